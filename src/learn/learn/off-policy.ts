import type { Policy } from '../../base/core/policy.ts'
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

/** What to know if one engine samples and another learns; undefined if nothing is to be chosen. */
export function twoEnginesLine(
  { name, weights }: Pick<Policy, 'name' | 'weights'>,
  { importance = [] }: { readonly importance?: readonly string[] },
): string | undefined {
  if (!weights || importance.length > 0) return undefined
  return (
    `${name} samples and the trainer learns: two engines, whose log-probabilities differ by some 0.03 nats a token ` +
    'if one of them computes in bfloat16, and so does every ratio. Recorded numbers are kept as they are; ' +
    '--proximal recompute with --importance token, mask or reject weighs tokens by the difference, and the sentinel ' +
    'engine-mismatch tells of a large one (docs/guides/training.md#samples-of-other-weights)'
  )
}
