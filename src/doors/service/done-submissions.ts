import type { DoneSubmission } from './rollouts-record.ts'

/** Taken submissions that a service without a record remembers. */
const most = 10_000

/** What is remembered of completely taken submissions, so that one sent again is not rolled again. */
export class DoneSubmissions {
  readonly #done = new Map<string, DoneSubmission>()
  readonly #most: number

  /** A run folder keeps the groups of every name, and a name used twice would replace them: there all are kept. */
  constructor({ keepsAll }: { readonly keepsAll: boolean }) {
    this.#most = keepsAll ? Number.POSITIVE_INFINITY : most
  }

  get(id: string): DoneSubmission | undefined {
    return this.#done.get(id)
  }

  add(done: DoneSubmission): void {
    this.#done.set(done.status.id, done)
    for (const id of this.#done.keys()) {
      if (this.#done.size <= this.#most) return
      this.#done.delete(id)
    }
  }
}
