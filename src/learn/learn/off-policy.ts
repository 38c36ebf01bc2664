import { importanceWeights, stalenessWeights } from '../../base/math/importance.ts'
import type { TokenPaths } from '../../base/math/paths.ts'
import type { OffPolicy } from '../../engine/weigh/importance.ts'

/** What is known of the tokens of rows laid end to end. */
export interface SampledTokens {
  readonly recorded: Float64Array
  /** Under the weights before learning; needed by ratios. */
  readonly proximal: Float64Array | undefined
  /** The version that sampled each. */
  readonly versions: Float64Array
  readonly current: number
}

/** Importance weights of all entries of paths, and the share of them that a bound changed or rejected. */
export function importanceOf(
  paths: TokenPaths,
  { ratios, staleness }: OffPolicy,
  { recorded, proximal, versions, current }: SampledTokens,
): { readonly weights: Float64Array; readonly bounded: number } {
  const weights = new Float64Array(paths.tokens.length).fill(1)
  const at = (values: Float64Array): Float64Array =>
    Float64Array.from(paths.tokens, token => values[token]!)
  let bounded = 0
  for (const settings of ratios) {
    if (!proximal) throw new Error('importance weights need log-probabilities of before learning')
    const engines = { ...paths, rolloutLogprobs: at(recorded), trainerLogprobs: at(proximal) }
    const found = importanceWeights(engines, settings)
    found.weights.forEach((weight, entry) => {
      weights[entry]! *= weight
    })
    bounded = Math.max(bounded, found.bounded)
  }
  if (staleness) {
    stalenessWeights(at(versions), current, staleness).forEach((weight, entry) => {
      weights[entry]! *= weight
    })
  }
  return { weights, bounded }
}
