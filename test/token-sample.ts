import type { TokenSample } from '../src/base/core/policy.ts'
import { sampled } from '../src/base/core/segment.ts'

/** What an invented answer is besides its tokens. */
export interface Invented {
  /** How many tokens were asked. @default 0 */
  readonly prompt?: number
  /** How many of those a cache held. */
  readonly cached?: number
  /** Every token's log-probability. @default -1 */
  readonly logprob?: number
  /** Draws log-probabilities and entropies instead, from 0 to 1 each. */
  readonly next?: () => number
  /** @default 'stop' */
  readonly finish?: 'stop' | 'length' | 'abort'
}

/** An answer of these tokens with invented numbers, as a policy gives it. */
export function tokenSample(ids: Int32Array, invented: Invented = {}): TokenSample {
  const { prompt = 0, cached, logprob = -1, next, finish = 'stop' } = invented
  return {
    kind: 'tokens',
    segment: sampled({
      ids,
      logprobs: Float32Array.from(ids, () => (next ? -3 * next() : logprob)),
      ...(next && { entropies: Float32Array.from(ids, next) }),
      version: { from: 0, to: 0 },
    }),
    finish: { kind: finish },
    usage: { prompt, sampled: ids.length, seconds: 0, ...(cached !== undefined && { cached }) },
  }
}
