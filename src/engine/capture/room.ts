import type { Limits } from '../rollout/attempt.ts'
import { AttemptIsOver, ContextIsFull } from './contract.ts'

/** Tokens that are set aside for one sample, and what they are bounded by. */
export interface Share {
  readonly tokens: number
  /** `request`: the agent itself asked for no more. */
  readonly bound: 'tokens' | 'context' | 'request'
  /** Gives back what was not sampled. */
  settle(sampled: number): void
}

/** What is left of an attempt's limits, shared by the requests that run side by side. */
export interface Room {
  /** Whether all tokens that are left are set aside for others. */
  readonly isTaken: boolean
  /** Resolves when somebody has given tokens back. */
  settled(): Promise<void>
  /** Sets tokens aside; refuses what is too much. */
  take(wanted: { readonly prompt: number; readonly most: number | undefined }): Share
  /** Tokens that may still be sampled. */
  readonly left: number
}

/** Opens the shared budget of an attempt's limits. */
export function makeRoom(limits: Limits): Room {
  return new LimitedRoom(limits)
}

class LimitedRoom implements Room {
  readonly #limits: Limits
  #turns = 0
  #sampled = 0
  #reserved = 0
  #waiting: (() => void)[] | undefined

  constructor(limits: Limits) {
    this.#limits = limits
  }

  get left(): number {
    return this.#limits.tokens - this.#sampled
  }

  get isTaken(): boolean {
    return this.#reserved > 0 && this.left <= this.#reserved
  }

  settled(): Promise<void> {
    this.#waiting ??= []
    const waiting = this.#waiting
    return new Promise(resolve => waiting.push(resolve))
  }

  take({ prompt, most }: { readonly prompt: number; readonly most: number | undefined }): Share {
    const { turns, context, newTokens } = this.#limits
    if (this.#turns >= turns) throw new AttemptIsOver({ kind: 'truncated', limit: 'turns' })
    const left = this.left - this.#reserved
    if (left <= 0) throw new AttemptIsOver({ kind: 'truncated', limit: 'tokens' })
    if (prompt >= context) {
      throw new ContextIsFull(prompt, `together with its answer it may have ${context}`)
    }
    const { tokens, bound } = leastOf(most, Math.min(newTokens, left), context - prompt)
    this.#turns++
    this.#reserved += tokens
    return { tokens, bound, settle: sampled => this.#settle(tokens, sampled) }
  }

  #settle(reserved: number, sampled: number): void {
    this.#reserved -= reserved
    this.#sampled += sampled
    const woken = this.#waiting ?? []
    this.#waiting = undefined
    for (const each of woken) each()
  }
}

/** The smallest of three: what the request wants, the tokens left, the context left. */
function leastOf(
  wanted: number | undefined,
  left: number,
  context: number,
): Pick<Share, 'tokens' | 'bound'> {
  if (wanted !== undefined && wanted <= left && wanted <= context) {
    return { tokens: wanted, bound: 'request' }
  }
  return left <= context ? { tokens: left, bound: 'tokens' } : { tokens: context, bound: 'context' }
}
