import { existsSync } from 'node:fs'
import { type FileHandle, mkdir, open, readFile, rm, truncate } from 'node:fs/promises'
import { dirname, resolve } from 'node:path'
import { appenderTo } from '../../base/core/files/appender.ts'
import { openPlain } from '../../base/core/files/plain-file.ts'
import type { Json } from '../../base/core/ids.ts'
import { SettingError } from '../../base/core/names/setting-error.ts'
import { jsonWithoutSecrets } from '../../base/core/process/secrets.ts'
import type { Built, DatasetRow } from './build.ts'

/** The record of a set while it is built: one line per item, in a file beside it. */
export interface Work extends AsyncDisposable {
  readonly resumed: number
  readonly done: number
  readonly rows: number
  /** Items that were rejected, by reason. */
  readonly rejected: Readonly<Record<string, number>>
  has(id: string): boolean
  record(id: string, built: Built): Promise<void>
  /** The rows that an item gave; none if it was rejected. */
  rowsOf(id: string): Promise<readonly DatasetRow[]>
  /** Removes the record once the set is written; the rejected items stay in a file of their own. */
  finish(): Promise<void>
}

interface Entry {
  readonly id: string
  readonly rows?: readonly DatasetRow[]
  readonly reason?: string
  readonly detail?: string
}

interface LinePlace {
  readonly offset: number
  readonly length: number
}

/** Opens the record of a set, or goes on with it if the settings are the same. */
export async function openWork(
  out: string,
  files: readonly string[],
  settings: Readonly<Record<string, Json>>,
): Promise<Work> {
  const path = `${out}.work`
  const old = files.find(file => existsSync(file))
  if (old !== undefined && !existsSync(path)) {
    throw new SettingError(`${old} is there already: remove it or choose another --out`)
  }
  await mkdir(dirname(resolve(out)), { recursive: true })
  const head = JSON.stringify({ espalier: 'dataset', settings })
  const entries = await readWork(path, head)
  const lines = appenderTo(path)
  if (!entries) await lines.append(`${head}\n`)
  const file = await openPlain(path, 'read')
  const tally = makeTally(entries ?? [])
  return {
    resumed: entries?.length ?? 0,
    get done() {
      return tally.places.size
    },
    get rows() {
      return tally.rows
    },
    get rejected() {
      return Object.fromEntries([...tally.reasons].sort((a, b) => b[1] - a[1]))
    },
    has: id => tally.places.has(id),
    async record(id, built) {
      const entry: Entry =
        built.kind === 'kept'
          ? { id, rows: built.rows }
          : {
              id,
              reason: built.reason,
              ...(built.detail !== undefined && { detail: built.detail }),
            }
      const line = Buffer.from(`${jsonWithoutSecrets(entry)}\n`)
      tally.add(entry, { offset: await lines.append(line), length: line.length })
    },
    async rowsOf(id) {
      const { offset, length: size } = tally.places.get(id)!
      const bytes = Buffer.alloc(size)
      await file.read(bytes, 0, size, offset)
      return (JSON.parse(bytes.toString()) as Entry).rows ?? []
    },
    async finish() {
      await lines.settled()
      await writeRejected(`${out.slice(0, out.lastIndexOf('.'))}.rejected.jsonl`, file, tally)
      await rm(path)
    },
    async [Symbol.asyncDispose]() {
      await lines.settled()
      await file.close()
    },
  }
}

function makeTally(known: readonly { readonly entry: Entry; readonly place: LinePlace }[]) {
  const places = new Map<string, LinePlace>()
  const reasons = new Map<string, number>()
  const refused: string[] = []
  const tally = {
    places,
    reasons,
    refused,
    rows: 0,
    add(entry: Entry, place: LinePlace): void {
      places.set(entry.id, place)
      tally.rows += entry.rows?.length ?? 0
      if (entry.reason === undefined) return
      reasons.set(entry.reason, (reasons.get(entry.reason) ?? 0) + 1)
      refused.push(entry.id)
    },
  }
  for (const { entry, place } of known) tally.add(entry, place)
  return tally
}

/** What a file has on record, if anything; a line that a kill cut is cut off. */
async function readWork(
  path: string,
  head: string,
): Promise<readonly { readonly entry: Entry; readonly place: LinePlace }[] | undefined> {
  if (!existsSync(path)) return undefined
  const bytes = await readFile(path)
  const length = bytes.lastIndexOf(10) + 1
  if (length < bytes.length) await truncate(path, length)
  if (length === 0) return undefined
  const entries: { entry: Entry; place: LinePlace }[] = []
  for (let offset = 0; offset < length; ) {
    const next = bytes.indexOf(10, offset) + 1
    const line = bytes.toString('utf8', offset, next - 1)
    if (offset === 0) checkHead(path, line, head)
    else
      entries.push({ entry: JSON.parse(line) as Entry, place: { offset, length: next - offset } })
    offset = next
  }
  return entries
}

function checkHead(path: string, line: string, head: string): void {
  if (line === head) return
  throw new Error(
    `${path} was begun with other settings (${line.slice(0, 300)}): give the same ones to go on ` +
      'with it, or remove it to begin again',
  )
}

async function writeRejected(
  path: string,
  file: FileHandle,
  { refused, places }: ReturnType<typeof makeTally>,
): Promise<void> {
  if (refused.length === 0) return
  const target = await open(path, 'w')
  try {
    for (const id of refused.sort()) {
      const { offset, length } = places.get(id)!
      const bytes = Buffer.alloc(length)
      await file.read(bytes, 0, length, offset)
      await target.appendFile(bytes)
    }
  } finally {
    await target.close()
  }
}
