import type { Sampling } from '../../base/core/policy.ts'

/** Whether sampling cuts the distribution, so that what is left is renormalised. */
export function isCut({ topP, topK, minP }: Sampling): boolean {
  return topP < 1 || topK > 0 || minP > 0
}
