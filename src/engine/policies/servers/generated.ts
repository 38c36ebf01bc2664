import type { Finish } from '../../../base/core/policy.ts'
import type { TopLogprobs } from '../../../base/core/segment.ts'

/** A server's answer to one sample, checked; each kind of server has its own reader for it. */
export interface Generated {
  readonly ids: Int32Array
  readonly logprobs: Float32Array
  readonly top: TopLogprobs | undefined
  readonly finish: Finish
  /** The name of the weights, or all names in their order if they changed inside the answer. */
  readonly weights: unknown
  readonly promptTokens: number | undefined
  readonly cachedTokens: number | undefined
  /** Which experts served its tokens, as the server wrote it. */
  readonly experts?: unknown
}

/**
 * The names of the weights that sampled an answer, in their order, from the spans that newer servers
 * report; undefined if they report none, or if nothing changed.
 */
export function spanNames(spans: unknown): readonly unknown[] | undefined {
  if (!Array.isArray(spans) || spans.length < 2) return undefined
  return spans.map(span => (span as { version?: unknown } | null)?.version)
}
