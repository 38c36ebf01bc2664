import type { FileHandle } from 'node:fs/promises'
import { openPlain } from './plain-file.ts'
import { StoreError } from './store-error.ts'

/**
 * Adds to a file that only grows. An entry is in it whole or not at all: what a refused write left is
 * cut off again, at once or before the next entry.
 */
export interface Appender {
  /** Resolves with its place when the entry is in the file; entries follow each other in the order of the calls. */
  append(entry: string | Uint8Array): Promise<number>
  /** Resolves when nothing is on its way to the file. */
  settled(): Promise<void>
}

/** How a file is added to. */
export interface AppenderOptions {
  /** Whether entries are lines: the first begins a line of its own if a killed writer left half a one. @default true */
  readonly isLines?: boolean
}

interface Waiting {
  readonly bytes: Buffer
  resolve(place: number): void
  reject(cause: unknown): void
}

/** What adds to this file. It is open only while something is written. */
export function appenderTo(path: string, { isLines = true }: AppenderOptions = {}): Appender {
  let waiting: Waiting[] = []
  let writing: Promise<void> | undefined
  let isMended = !isLines
  /** How long the file is without a batch that may not be whole in it. */
  let whole: number | undefined

  async function cut(handle: FileHandle): Promise<number> {
    const { size } = await handle.stat()
    if (whole === undefined || whole >= size) return size
    await handle.truncate(whole)
    return whole
  }

  async function write(handle: FileHandle, batch: readonly Waiting[]): Promise<number> {
    const size = await cut(handle)
    whole = size
    const begun = isMended ? '' : await unfinishedLine(handle, size)
    await handle.appendFile(Buffer.concat([Buffer.from(begun), ...batch.map(each => each.bytes)]))
    return size + begun.length
  }

  async function writeBatch(batch: readonly Waiting[]): Promise<void> {
    try {
      let place = await withFile(path, handle => write(handle, batch))
      isMended = true
      whole = undefined
      for (const { bytes, resolve } of batch) {
        resolve(place)
        place += bytes.length
      }
    } catch (cause) {
      // If the cut fails too, it is made before the next entry is written.
      if (whole !== undefined) await withFile(path, cut).catch(() => {})
      const error = new StoreError(path, { cause })
      for (const { reject } of batch) reject(error)
    }
  }

  async function writeAll(): Promise<void> {
    while (waiting.length > 0) {
      const batch = waiting
      waiting = []
      await writeBatch(batch)
    }
    writing = undefined
  }

  return {
    append: entry =>
      new Promise((resolve, reject) => {
        waiting.push({ bytes: Buffer.from(entry), resolve, reject })
        writing ??= writeAll()
      }),
    async settled() {
      await writing
    },
  }
}

async function withFile<T>(path: string, work: (handle: FileHandle) => Promise<T>): Promise<T> {
  const handle = await openPlain(path, 'append')
  let result: T
  try {
    result = await work(handle)
  } catch (cause) {
    await handle.close().catch(() => {})
    throw cause
  }
  // Some file systems report only here that nothing fitted.
  await handle.close()
  return result
}

/** The end of a line that a killed writer left unfinished; empty if there is none. */
async function unfinishedLine(handle: FileHandle, size: number): Promise<string> {
  if (size === 0) return ''
  const { buffer } = await handle.read(Buffer.alloc(1), 0, 1, size - 1)
  return buffer[0] === 0x0a ? '' : '\n'
}
