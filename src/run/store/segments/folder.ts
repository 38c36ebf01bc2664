import { closeSync, openSync, readSync } from 'node:fs'
import { mkdir, open } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { makeGathering } from '../gathering.ts'
import { type Journal, openJournal } from '../journal.ts'
import type { RunStorage, SegmentWriter } from './storage.ts'

/** Milliseconds for which those who append share a sync to the disk. */
const together = 16

/** Segments in a folder, each a journal by itself. */
export function openFolder(folder: string): RunStorage {
  return {
    isFar: false,
    write: name => new FolderSegment(folder, `${name}.frames`),
    async read(segment, offset, size) {
      const handle = await open(join(folder, segment))
      try {
        const bytes = Buffer.allocUnsafeSlow(size)
        const { bytesRead } = await handle.read(bytes, 0, size, offset)
        return bytes.subarray(0, bytesRead)
      } finally {
        await handle.close()
      }
    },
    readNow(segment, offset, size) {
      const file = openSync(join(folder, segment), 'r')
      try {
        const bytes = Buffer.allocUnsafeSlow(size)
        return bytes.subarray(0, readSync(file, bytes, 0, size, offset))
      } finally {
        closeSync(file)
      }
    },
  }
}

class FolderSegment implements SegmentWriter {
  readonly #path: string
  readonly #name: string
  #journal: Promise<Journal> | undefined
  readonly #syncing = makeGathering<Syncing>(together, async waiting => {
    const synced = this.#open().then(journal => journal.sync())
    for (const { resolve, reject } of waiting) synced.then(resolve, reject)
    await synced.catch(() => undefined)
  })

  constructor(folder: string, name: string) {
    this.#path = join(folder, name)
    this.#name = name
  }

  async append(bytes: Buffer): Promise<{ readonly segment: string; readonly offset: number }> {
    const journal = await this.#open()
    const { offset } = await journal.append(bytes)
    await new Promise<void>((resolve, reject) => this.#syncing.add({ resolve, reject }))
    return { segment: this.#name, offset }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    const journal = await this.#journal?.catch(() => undefined)
    await journal?.[Symbol.asyncDispose]()
  }

  /** Its file is made when there is something to write. */
  #open(): Promise<Journal> {
    this.#journal ??= mkdir(dirname(this.#path), { recursive: true })
      .then(() => openJournal(this.#path))
      .catch((error: unknown) => {
        this.#journal = undefined
        throw error
      })
    return this.#journal
  }
}

/** Somebody who waits until what was appended is on the disk. */
interface Syncing {
  readonly resolve: () => void
  readonly reject: (error: unknown) => void
}
