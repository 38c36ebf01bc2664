import { existsSync } from 'node:fs'
import { mkdir, readdir, readFile, rename, writeFile } from 'node:fs/promises'
import { homedir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { request } from 'undici'
import type { Policy } from '../core/policy.ts'
import { modelFileNames, readModelFolder } from '../text/model-folder.ts'
import { createRenderer, type ModelRenderer, type RendererOptions } from '../text/renderer.ts'

/** Where a model's tokenizer and template may come from. */
export interface ModelSourceOptions {
  /** Never fetch. @default false */
  readonly offline?: boolean
  /** @default 'https://huggingface.co' */
  readonly hub?: string
  /** Told before anything is fetched. */
  readonly tell?: (line: string) => void
}

/** The model folder in this package that spells text byte by byte; for scripted answers and tests. */
export const byteModel = fileURLToPath(new URL('../../models/chatml-bytes', import.meta.url))

/** Opens a renderer from a model folder or a Hugging Face id. */
export async function openRenderer(
  model: string,
  options: Partial<RendererOptions> & ModelSourceOptions = {},
): Promise<ModelRenderer> {
  const { offline, hub, tell, ...rest } = options
  const folder = await findModel(model, {
    ...(offline !== undefined && { offline }),
    ...(hub !== undefined && { hub }),
    ...(tell && { tell }),
  })
  // One day for the whole run, so that a template that writes the date writes the same one.
  const today = new Date()
  return createRenderer(await readModelFolder(folder), { clock: () => today, ...rest })
}

/** The model that a policy's server says it serves; without a server, the byte model of this package. */
export async function openModelOf(
  policy: Policy,
  signal: AbortSignal = new AbortController().signal,
): Promise<string> {
  if (!policy.describe) return byteModel
  const { model } = await policy.describe({ signal })
  if (model) return model
  throw new Error(
    `${policy.name} does not say which model it serves: name its folder or id with --model`,
  )
}

/** The folder of a model: itself, a snapshot in the local cache, or freshly fetched files. */
export async function findModel(model: string, options: ModelSourceOptions = {}): Promise<string> {
  if (existsSync(model)) return model
  if (!/^[\w.-]+\/[\w.-]+$/.test(model)) {
    throw new Error(`no folder ${model}, and it is not a Hugging Face id of the form owner/name`)
  }
  const cached = await findInCache(model)
  if (cached) return cached
  if (options.offline) {
    throw new Error(`${model} is not in the local cache, and --offline forbids fetching it`)
  }
  return await fetchModel(model, options)
}

function cacheRoots(): readonly string[] {
  const home = process.env.HF_HOME ?? join(homedir(), '.cache', 'huggingface')
  return [process.env.HF_HUB_CACHE ?? join(home, 'hub')]
}

function ownCache(model: string): string {
  const root = process.env.ESPALIER_CACHE ?? join(homedir(), '.cache', 'espalier')
  return join(root, 'models', model.replace('/', '--'))
}

async function findInCache(model: string): Promise<string | undefined> {
  const own = ownCache(model)
  if (existsSync(join(own, 'tokenizer.json'))) return own
  for (const root of cacheRoots()) {
    const folder = join(root, `models--${model.replace('/', '--')}`)
    const main = await readFile(join(folder, 'refs', 'main'), 'utf8').catch(() => undefined)
    const others = await readdir(join(folder, 'snapshots')).catch(() => [])
    for (const revision of [main?.trim(), ...others]) {
      const snapshot = revision && join(folder, 'snapshots', revision)
      if (snapshot && existsSync(join(snapshot, 'tokenizer.json'))) return snapshot
    }
  }
  return undefined
}

/** Only the tokenizer and template files are fetched, never weights. */
async function fetchModel(model: string, options: ModelSourceOptions): Promise<string> {
  const hub = (options.hub ?? 'https://huggingface.co').replace(/\/$/, '')
  const folder = ownCache(model)
  options.tell?.(`fetching tokenizer and chat template of ${model} from ${hub} into ${folder}`)
  const files: [string, Buffer][] = []
  for (const name of modelFileNames) {
    const bytes = await fetchFile(`${hub}/${model}/resolve/main/${name}`)
    if (bytes) files.push([name, bytes])
    else if (name === 'tokenizer.json') throw new Error(`${hub} has no tokenizer.json for ${model}`)
  }
  await mkdir(folder, { recursive: true })
  // The tokenizer comes last: its presence means that the folder is whole.
  for (const [name, bytes] of files.reverse()) {
    await writeFile(join(folder, `${name}.part`), bytes)
    await rename(join(folder, `${name}.part`), join(folder, name))
  }
  return folder
}

const largestFile = 64 * 1024 * 1024

async function fetchFile(url: string, redirects = 5): Promise<Buffer | undefined> {
  const { statusCode, headers, body } = await request(url, { signal: AbortSignal.timeout(120_000) })
  if (statusCode >= 300 && statusCode < 400 && headers.location && redirects > 0) {
    await body.dump()
    return await fetchFile(new URL(String(headers.location), url).href, redirects - 1)
  }
  if (statusCode === 404) {
    await body.dump()
    return undefined
  }
  if (statusCode !== 200) {
    await body.dump()
    throw new Error(`GET ${url} answered ${statusCode}`)
  }
  const chunks: Buffer[] = []
  let size = 0
  for await (const chunk of body) {
    size += chunk.length
    if (size > largestFile) throw new Error(`GET ${url}: more than ${largestFile} bytes`)
    chunks.push(chunk as Buffer)
  }
  return Buffer.concat(chunks)
}
