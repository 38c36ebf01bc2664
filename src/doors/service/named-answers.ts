import { startTimer } from '../../base/core/process/timer.ts'
import { RefusedRequest } from '../door/refused-request.ts'

/** A request under a name that its client chose, so that the client can send it again. */
export interface NamedRequest {
  readonly key: string
  /** A digest of what is asked for: a name stands for one request. */
  readonly digest: string
}

/** How many answers are kept, and for how long. */
export interface NamedAnswersOptions {
  readonly most: number
  /** @default for as long as there is room */
  readonly seconds?: number
}

interface Kept<Answer> {
  readonly digest: string
  readonly answer: Promise<Answer>
  isMade: boolean
}

/**
 * Makes the answer to a named request once, and gives it again if the request is sent again, also while
 * it is being made. Failures are answers too: what failed may have changed something.
 */
export class NamedAnswers<Answer> {
  readonly #options: NamedAnswersOptions
  readonly #kept = new Map<string, Kept<Answer>>()

  constructor(options: NamedAnswersOptions) {
    this.#options = options
  }

  /** The answer to a request; one without a name is always made. */
  async give(request: NamedRequest | undefined, make: () => Promise<Answer>): Promise<Answer> {
    if (!request) return await make()
    const { key, digest } = request
    const known = this.#kept.get(key)
    if (!known) return await this.#keep(request, make())
    if (known.digest === digest) return await known.answer
    throw new RefusedRequest(409, `idempotency-key "${key}" was sent before with another request`)
  }

  forget(key: string): void {
    this.#kept.delete(key)
  }

  async #keep({ key, digest }: NamedRequest, answer: Promise<Answer>): Promise<Answer> {
    const kept = { digest, answer, isMade: false }
    this.#kept.set(key, kept)
    try {
      return await answer
    } catch (error) {
      if (ranNothing(error)) this.forget(key)
      throw error
    } finally {
      kept.isMade = true
      this.#letGo(key)
    }
  }

  /** Keeps to the limits; what is being made is always kept. */
  #letGo(key: string): void {
    const { most, seconds } = this.#options
    if (seconds !== undefined) startTimer(() => this.forget(key), seconds * 1000).unref()
    for (const [oldest, { isMade }] of this.#kept) {
      if (this.#kept.size <= most) return
      if (isMade) this.forget(oldest)
    }
  }
}

/** Whether a request was refused before anything was done for it: sent again, it may be accepted. */
function ranNothing(error: unknown): boolean {
  return error instanceof RefusedRequest && (error.statusCode === 404 || error.statusCode === 429)
}
