import { startTimer } from '../../base/core/process/timer.ts'
/** Ends something that nobody uses for a while. What is being done with it counts until it is over. */
export class IdleWatch {
  readonly #seconds: number
  readonly #end: () => void
  #uses = 0
  #isStopped = false
  #timer: NodeJS.Timeout | undefined

  constructor(seconds: number, end: () => void) {
    this.#seconds = seconds
    this.#end = end
    this.touch()
  }

  /** Begins the while anew. */
  touch(): void {
    clearTimeout(this.#timer)
    if (this.#uses > 0 || this.#isStopped) return
    this.#timer = startTimer(this.#end, this.#seconds * 1000).unref()
  }

  /** Does something with it, however long that takes. */
  async during<T>(work: () => Promise<T>): Promise<T> {
    this.#uses++
    this.touch()
    try {
      return await work()
    } finally {
      this.#uses--
      this.touch()
    }
  }

  /** Watches no longer. */
  stop(): void {
    this.#isStopped = true
    clearTimeout(this.#timer)
  }
}
