import { type FileHandle, open } from 'node:fs/promises'

const chunkSize = 1 << 20

/** Reads the lines of a file that may still grow; each line once, the last one when it is whole. */
export class Tail {
  readonly #path: string
  #offset = 0
  #rest = ''
  /** A character may be half there: its other half comes with the next bytes. */
  #decoder = new TextDecoder()

  constructor(path: string) {
    this.#path = path
  }

  /** The whole lines that were added since the last time; none if there is no file yet. */
  async *lines(): AsyncGenerator<string> {
    let handle: FileHandle
    try {
      handle = await open(this.#path, 'r')
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code === 'ENOENT') return
      throw error
    }
    try {
      const { size } = await handle.stat()
      // If the file became shorter, read it from the start: a resumed run removes steps that it repeats.
      if (size < this.#offset) this.#restart()
      const buffer = Buffer.alloc(chunkSize)
      while (this.#offset < size) {
        const { bytesRead } = await handle.read(buffer, 0, chunkSize, this.#offset)
        if (bytesRead === 0) return
        this.#offset += bytesRead
        const text =
          this.#rest + this.#decoder.decode(buffer.subarray(0, bytesRead), { stream: true })
        const lines = text.split('\n')
        this.#rest = lines.pop()!
        yield* lines
      }
    } finally {
      await handle.close()
    }
  }

  #restart(): void {
    this.#offset = 0
    this.#rest = ''
    this.#decoder = new TextDecoder()
  }
}
