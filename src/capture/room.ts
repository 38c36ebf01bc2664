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
  /** Sets tokens aside, waiting for others to settle where all of them are; refuses what is too much. */
  take(wanted: {
    readonly prompt: number
    readonly most: number | undefined
    readonly signal: AbortSignal
  }): Promise<Share>
  /** Tokens that may still be sampled. */
  readonly left: number
}

/** Opens the room that limits give. */
export function openRoom(limits: Limits): Room {
  let turns = 0
  let sampled = 0
  let reserved = 0
  let waiting: (() => void)[] = []

  const settled = (): Promise<void> => new Promise(resolve => waiting.push(resolve))
  const wake = (): void => {
    const woken = waiting
    waiting = []
    for (const each of woken) each()
  }

  return {
    get left() {
      return limits.tokens - sampled
    },
    async take({ prompt, most = Number.POSITIVE_INFINITY, signal }) {
      while (limits.tokens - sampled - reserved <= 0 && reserved > 0) await settled()
      signal.throwIfAborted()
      if (turns >= limits.turns) throw new AttemptIsOver({ kind: 'truncated', limit: 'turns' })
      const left = limits.tokens - sampled - reserved
      if (left <= 0) throw new AttemptIsOver({ kind: 'truncated', limit: 'tokens' })
      if (prompt >= limits.context) throw new ContextIsFull(prompt, limits.context)
      const bounds = [
        { tokens: most, bound: 'request' },
        { tokens: Math.min(limits.newTokens, left), bound: 'tokens' },
        { tokens: limits.context - prompt, bound: 'context' },
      ] as const
      const share = bounds.reduce((least, each) => (each.tokens < least.tokens ? each : least))
      turns++
      reserved += share.tokens
      return {
        ...share,
        settle(count) {
          reserved -= share.tokens
          sampled += count
          wake()
        },
      }
    },
  }
}
