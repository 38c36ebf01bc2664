import type { RoutedExperts } from '../../base/core/experts.ts'
import type { Finish, SampleUsage, TokenSample } from '../../base/core/policy.ts'
import {
  type LogprobBasis,
  sampled,
  type TopLogprobs,
  type VersionRange,
} from '../../base/core/segment.ts'

/** What a server drew, read and checked. */
export interface Drawn {
  readonly ids: Int32Array
  readonly logprobs: Float32Array | null
  readonly top?: TopLogprobs | undefined
  readonly experts?: RoutedExperts | undefined
  readonly basis: LogprobBasis
  readonly version: VersionRange
  readonly finish: Finish
  readonly usage: SampleUsage
}

/** What was drawn as the sample of the contract. */
export function toTokenSample(drawn: Drawn): TokenSample {
  const { ids, logprobs, top, basis, version, finish, usage, experts } = drawn
  const plain = { ids, logprobs, basis, version }
  const segment = sampled(
    top || experts ? { ...plain, ...(top && { top }), ...(experts && { experts }) } : plain,
  )
  return { kind: 'tokens', segment, finish, usage }
}
