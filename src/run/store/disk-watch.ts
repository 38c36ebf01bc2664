import { StoreError } from '../../base/core/files/store-error.ts'
import { pause } from '../../base/core/process/timer.ts'
import type { RunWriter } from './store.ts'

/** Why nothing is taken on now: what is answered could not be kept. */
export class DiskError extends Error {
  override name = 'DiskError'
  readonly statusCode = 503
}

/** How the disk is watched. */
export interface DiskWatchOptions {
  /** Told once when the run cannot be written, and once when it can be again. */
  readonly tell?: (line: string) => void
  /** Waits before the next try. @default a second */
  readonly wait?: (signal: AbortSignal) => Promise<void>
}

/**
 * Keeps a service alive over a disk that is full for a time: what could not be written is tried again
 * until it is, and nothing new is taken on meanwhile. After `end` the next failure counts.
 */
export class DiskWatch {
  readonly #options: DiskWatchOptions
  readonly #ended = new AbortController()
  readonly #waiting = new Set<(problem: DiskError) => void>()
  #onRoom = (): void => {}
  #problem: DiskError | undefined

  constructor(options: DiskWatchOptions = {}) {
    this.#options = options
  }

  /** Calls this whenever the run can be written again. */
  onRoom(act: () => void): void {
    this.#onRoom = act
  }

  get isFull(): boolean {
    return this.#problem !== undefined
  }

  /** Throws while the run cannot be written. */
  check(): void {
    if (this.#problem) throw this.#problem
  }

  /** Does what writes to the run until it succeeds. */
  async keep<T>(write: () => Promise<T>): Promise<T> {
    const { wait = signal => pause(1000, signal) } = this.#options
    for (;;) {
      try {
        const written = await write()
        this.#noteRoom()
        return written
      } catch (error) {
        if (!isOfDisk(error)) throw error
        this.#noteFull(error)
        const next = 'What was acknowledged is kept: started again with the same --out it goes on'
        if (this.#ended.signal.aborted)
          throw new StoreError(error.path, { cause: error.cause, next })
        // The end of waiting is no failure of its own.
        await wait(this.#ended.signal).catch(() => {})
      }
    }
  }

  /** Does what writes to the run at once or not at all; `probe` is written until there is room again. */
  async once<T>(write: () => Promise<T>, probe: () => Promise<void>): Promise<T> {
    try {
      return await write()
    } catch (error) {
      if (!isOfDisk(error)) throw error
      const isNews = !this.isFull
      this.#noteFull(error)
      if (isNews) void this.keep(probe).catch(() => {})
      throw this.#problem
    }
  }

  /** What this gives, unless the disk turns out to be full before: then it goes on, and this throws. */
  async unlessFull<T>(work: Promise<T>): Promise<T> {
    let refuse = (_: DiskError): void => {}
    const full = new Promise<never>((_, reject) => {
      refuse = reject
    })
    // Whoever does not wait any more is not told.
    work.catch(() => {})
    this.#waiting.add(refuse)
    if (this.#problem) refuse(this.#problem)
    try {
      return await Promise.race([work, full])
    } finally {
      this.#waiting.delete(refuse)
    }
  }

  /** A writer that does everything until it succeeds. */
  patient(writer: RunWriter): RunWriter {
    return {
      ...writer,
      writeTree: tree => this.keep(() => writer.writeTree(tree)),
      writeGroup: (...given) => this.keep(() => writer.writeGroup(...given)),
      writeSent: sent => this.keep(() => writer.writeSent(sent)),
      [Symbol.asyncDispose]: () => writer[Symbol.asyncDispose](),
    }
  }

  /** Waits for room no longer. */
  end(): void {
    this.#ended.abort()
  }

  #noteFull({ problem }: StoreError): void {
    if (this.#problem) return
    const said = `${problem}. Nothing is taken on until it can be; it goes on by itself then`
    this.#problem = new DiskError(said)
    this.#options.tell?.(said)
    for (const refuse of this.#waiting) refuse(this.#problem)
  }

  #noteRoom(): void {
    if (!this.#problem) return
    this.#problem = undefined
    this.#options.tell?.('the run can be written again: it goes on')
    this.#onRoom()
  }
}

/** Whether the system refused to write; a run that another process took over stays refused. */
function isOfDisk(error: unknown): error is StoreError {
  const { code } = ((error as Error).cause ?? {}) as NodeJS.ErrnoException
  return error instanceof StoreError && code !== undefined
}
