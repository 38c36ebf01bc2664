import { createReadStream, createWriteStream } from 'node:fs'
import { mkdtemp, open, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { basename, join, resolve } from 'node:path'
import { createInterface } from 'node:readline'
import { pipeline } from 'node:stream/promises'
import { SettingError } from '../../../base/core/names/setting-error.ts'
import { keepSecret } from '../../../base/core/process/secrets.ts'
import { type Exported, type ExportOptions, exportRun } from '../export.ts'
import { commitFiles, ensureDataset, type HubDataset } from './hub-upload.ts'
import { withoutImageMetadata } from './image-metadata.ts'

/** A dataset as `hub:OWNER/NAME[,format=FORMAT][,visibility=public]` names it. */
export interface HubTarget extends Pick<HubDataset, 'owner' | 'name' | 'visibility'> {
  readonly format: string
}

const namePattern = /^\w[\w.-]{0,95}$/
const visibilities = ['private', 'public'] as const

/** Reads where on a hub rows go; nothing if the text names no hub. */
export function readHubTarget(text: string): HubTarget | undefined {
  if (!text.startsWith('hub:')) return undefined
  const [place = '', ...options] = text.slice('hub:'.length).split(',')
  const [owner = '', name = '', ...more] = place.split('/')
  if (!namePattern.test(owner) || !namePattern.test(name) || more.length > 0)
    throw new SettingError(`--to ${text}: say hub:OWNER/NAME, such as hub:me/desk-rows`)
  const given = new Map(options.map(each => each.split('=') as [string, string | undefined]))
  const wrong = [...given.keys()].find(each => each !== 'format' && each !== 'visibility')
  if (wrong !== undefined)
    throw new SettingError(`--to ${text}: hub takes format and visibility, not "${wrong}"`)
  const visibility = visibilities.find(each => each === (given.get('visibility') ?? 'private'))
  if (!visibility) throw new SettingError(`--to ${text}: visibility is private or public`)
  return { owner, name, visibility, format: given.get('format') || 'jsonl' }
}

/** How rows are sent to a hub. */
export interface HubExportOptions extends Omit<ExportOptions, 'to' | 'out'> {
  readonly target: HubTarget
  /** The hub's address. */
  readonly hub: string
}

/**
 * Writes a run as rows and commits them to a dataset of the Hub, which is made if there is none, private
 * unless it is said to be public. Secrets are left out as in every export, and of images what lies beside the picture.
 */
export async function exportToHub(
  run: string,
  { target, hub, ...options }: HubExportOptions,
): Promise<Exported & { readonly url: string }> {
  const key = process.env.HF_TOKEN
  if (!key)
    throw new SettingError('HF_TOKEN is missing: a token of yours that may write to the Hub')
  keepSecret(key)
  const { owner, name, visibility, format } = target
  const folder = await mkdtemp(join(tmpdir(), 'espalier-hub-'))
  try {
    const out = join(folder, 'rows')
    const exported = await exportRun(run, { ...options, to: format, out })
    if (exported.rows === 0) return { ...exported, url: '' }
    const file = join(folder, 'train')
    const images = await writeCleaned(out, file, format)
    const path = `data/train.${format === 'inspect' || format.startsWith('tau') ? 'json' : 'jsonl'}`
    const card = join(folder, 'README.md')
    await writeFile(card, cardOf(target, { path, run, exported }))
    const { signal } = options
    const address = hub.replace(/(?<!\/)\/+$/, '')
    const to = { hub: address, key, owner, name, visibility, ...(signal && { signal }) }
    await ensureDataset(to)
    const files = [
      { path, file },
      { path: 'README.md', file: card, onlyIfMissing: true },
    ]
    const url = await commitFiles(to, files, `${exported.rows} rows of ${basename(resolve(run))}`)
    const notes = images === 0 ? exported.notes : [...exported.notes, leftOutNote(images)]
    return { ...exported, notes, url, loading: [loadingLine(target)] }
  } finally {
    await rm(folder, { recursive: true, force: true })
  }
}

const leftOutNote = (images: number): string =>
  `${images} images were left out, since what lies beside their pictures could not be found: png, jpeg and webp can be freed of it`

/**
 * Copies rows without what lies beside the pictures in them, and counts the pictures that had to be left out; formats
 * that are no text cannot be looked through.
 */
async function writeCleaned(from: string, to: string, format: string): Promise<number> {
  await using handle = await open(from)
  const { buffer } = await handle.read(Buffer.alloc(4), 0, 4, 0)
  if (buffer.toString('latin1') === 'PAR1') {
    throw new SettingError(
      `${format} is no text, so images in it cannot be freed of what lies beside them: take jsonl or another format of lines`,
    )
  }
  let count = 0
  const lines = createInterface({
    input: createReadStream(from),
    crlfDelay: Number.POSITIVE_INFINITY,
  })
  await pipeline(
    lines,
    async function* clean(source: AsyncIterable<string>) {
      for await (const line of source) yield `${withoutImageMetadata(line, () => count++)}\n`
    },
    createWriteStream(to, { mode: 0o600 }),
  )
  return count
}

const loadingLine = ({ owner, name }: HubTarget): string =>
  `python:  rows = datasets.load_dataset("${owner}/${name}", split="train")`

interface Card {
  readonly path: string
  readonly run: string
  readonly exported: Exported
}

function cardOf(target: HubTarget, { path, run, exported }: Card): string {
  return `---
configs:
- config_name: default
  data_files:
  - split: train
    path: ${path}
tags:
- reinforcement-learning
- espalier
---

# ${target.name}

${exported.rows} rows of the run \`${basename(resolve(run))}\` in the format \`${target.format}\`, written by Espalier.

\`\`\`python
${loadingLine(target).replace('python:  ', 'import datasets\n')}
\`\`\`
`
}
