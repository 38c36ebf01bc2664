import { closeSync, fstatSync, readSync } from 'node:fs'
import { mkdir, rm } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { openPlain, openPlainNow } from '../../../base/core/files/plain-file.ts'
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
      const handle = await openPlain(join(folder, segment), 'read')
      try {
        const bytes = roomFor(size, offset, await handle.stat())
        const { bytesRead } = await handle.read(bytes, 0, bytes.length, offset)
        return bytes.subarray(0, bytesRead)
      } finally {
        await handle.close()
      }
    },
    readNow(segment, offset, size) {
      const file = openPlainNow(join(folder, segment))
      try {
        const bytes = roomFor(size, offset, fstatSync(file))
        return bytes.subarray(0, readSync(file, bytes, 0, bytes.length, offset))
      } finally {
        closeSync(file)
      }
    },
    remove: segment => rm(join(folder, segment), { force: true }),
  }
}

/** Room for a part of a file, as far as the file reaches. */
function roomFor(size: number, offset: number, file: { readonly size: number }): Buffer {
  return Buffer.allocUnsafeSlow(Math.max(0, Math.min(size, file.size - offset)))
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
