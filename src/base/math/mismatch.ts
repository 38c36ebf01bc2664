import { checkTrained, eachTrained } from './batch.ts'
import type { TwoEngines } from './importance.ts'
import { quantile } from './statistics.ts'

/** The distance between trainer and sampler over the trained tokens. */
export interface Mismatch {
  readonly tokens: number
  /** KL(sampling ‖ training), by the estimate that is never negative: the mean of r − 1 − log r, r = training / sampling. */
  readonly kl: number
  /** Quantiles of the ratios: one in a hundred is below `low`, one above `high`. */
  readonly ratio: { readonly low: number; readonly median: number; readonly high: number }
  /** (Σ r)² / (n Σ r²), in (0, 1]: the share of the tokens that weighing by ratios would leave. */
  readonly effectiveSampleShare: number
}

/** KL(sampling ‖ training) by that estimate, part by part of the trained tokens: `part` gives each token's, from 0 on. */
export function mismatchByPart(tokens: TwoEngines, part: Int32Array): readonly number[] {
  const sums: number[] = []
  const counts: number[] = []
  eachTrained(tokens, token => {
    const d = tokens.trainerLogprobs[token]! - tokens.rolloutLogprobs[token]!
    const at = part[token]!
    sums[at] = (sums[at] ?? 0) + Math.expm1(d) - d
    counts[at] = (counts[at] ?? 0) + 1
  })
  return Array.from(sums, (sum, at) => (sum === undefined ? 0 : sum / counts[at]!))
}

/** Compares the log-probabilities of the engine that sampled tokens with those of the one that trains on them. */
export function mismatch(tokens: TwoEngines): Mismatch {
  checkTrained(tokens, 'rolloutLogprobs', tokens.rolloutLogprobs)
  checkTrained(tokens, 'trainerLogprobs', tokens.trainerLogprobs)
  const ratios: number[] = []
  const sums = { kl: 0, ratio: 0, squares: 0 }
  eachTrained(tokens, token => {
    const d = tokens.trainerLogprobs[token]! - tokens.rolloutLogprobs[token]!
    const ratio = Math.exp(d)
    ratios.push(ratio)
    sums.kl += Math.expm1(d) - d
    sums.ratio += ratio
    sums.squares += ratio * ratio
  })
  const count = ratios.length
  return {
    tokens: count,
    kl: count === 0 ? 0 : sums.kl / count,
    ratio: {
      low: quantile(ratios, 0.01),
      median: quantile(ratios, 0.5),
      high: quantile(ratios, 0.99),
    },
    effectiveSampleShare: count === 0 ? 1 : sums.ratio ** 2 / (count * sums.squares),
  }
}
