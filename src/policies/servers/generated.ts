import type { Finish } from '../../core/policy.ts'
import type { TopLogprobs } from '../../core/segment.ts'

/** What a server's answer to one sample says, checked; every server's own reader makes it. */
export interface Generated {
  readonly ids: Int32Array
  readonly logprobs: Float32Array
  readonly top: TopLogprobs | undefined
  readonly finish: Finish
  readonly weights: unknown
  readonly promptTokens: number | undefined
  readonly cachedTokens: number | undefined
}
