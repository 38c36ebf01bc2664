import {
  checkTrained,
  eachTrained,
  normalisers,
  type TokenBatch,
  type TokenNumbers,
} from './batch.ts'
import { checkNumber, checkWord, readOptions } from './options.ts'

/** Log-probabilities of the same tokens from the engine that sampled them and from the trainer. */
export interface TwoEngines extends TokenBatch {
  /** As recorded while sampling. */
  readonly rolloutLogprobs: TokenNumbers
  /** Recomputed by the trainer with the weights of that time. */
  readonly trainerLogprobs: TokenNumbers
}

/** How importance weights are made and bounded. */
export interface ImportanceSettings {
  /**
   * What one ratio is about: each `token`; the whole `sequence` (the product of its tokens' ratios); or
   * its `geometric` mean. The last two are one number for all tokens of a trajectory.
   */
  readonly level: 'token' | 'sequence' | 'geometric'
  /**
   * `truncate` at `high`; `clip` into [low, high]; `mask`: 0 outside [low, high] (IcePop); `reject`: 1 inside, 0 outside, so
   * that nothing is weighed by its ratio.
   */
  readonly mode: 'truncate' | 'clip' | 'mask' | 'reject'
  readonly low: number
  readonly high: number
  /** A trajectory with any token's ratio below this is rejected as a whole; 0 turns it off. */
  readonly veto: number
  /** Divide by the mean over the trained tokens, so that weights average 1. */
  readonly normalise: boolean
}

/** Weights to multiply token losses with, and how far the two engines are apart. */
export interface Importance {
  /** Per token; 0 at context and at what was rejected. Use them as `importance` of a loss. */
  readonly weights: Float64Array
  /** Share of trained tokens that was bounded, or masked. */
  readonly bounded: number
  /** Trajectories that the veto rejected. */
  readonly vetoed: number
  /** (Σw)² / (n Σw²) before bounding, in (0, 1]: the share of samples that the weights leave. */
  readonly effectiveSampleShare: number
  /** E[w²] − 1 before bounding. */
  readonly chiSquare: number
}

/** How far a log-ratio may go before it is held. */
const limit = 20

/**
 * Truncated (Yao et al. 2025, "Your efficient RL framework secretly brings you off-policy training") and
 * masked importance sampling: w = exp(log π_trainer − log π_rollout), bounded. The weights are
 * constants of a loss. Rejection changes numerators only: a loss still divides by all tokens.
 * Compute them on the whole batch, before it is split.
 */
export function importanceWeights(
  tokens: TwoEngines,
  options: Partial<ImportanceSettings> = {},
): Importance {
  const settings = readOptions('Importance sampling', importanceDefaults, options)
  checkSettings(settings)
  checkTrained(tokens, 'rolloutLogprobs', tokens.rolloutLogprobs)
  checkTrained(tokens, 'trainerLogprobs', tokens.trainerLogprobs)
  const { ratios, vetoed } = ratiosOf(tokens, settings)
  const weights = new Float64Array(ratios.length)
  const spread = sampleSpread(tokens, ratios)
  let bounded = 0
  eachTrained(tokens, (token, trajectory) => {
    const weight = boundedWeight(ratios[token]!, settings)
    if (settings.mode === 'reject' ? weight === 0 : weight !== ratios[token]) bounded++
    weights[token] = vetoed.has(trajectory) ? 0 : weight
  })
  if (settings.normalise) averageToOne(tokens, weights)
  const { count, ...shares } = spread
  return { weights, bounded: bounded / Math.max(1, count), vetoed: vetoed.size, ...shares }
}

const importanceDefaults: ImportanceSettings = {
  level: 'token',
  mode: 'truncate',
  low: 0,
  high: 2,
  veto: 0,
  normalise: false,
}

/** What staleness costs. */
export interface StalenessSettings {
  /** Older tokens have weight 0. */
  readonly maximumLag: number
  /** Weight per version of lag: decay^lag. */
  readonly decay: number
}

/**
 * Off-policy weights by version: decay^(current − version), 0 beyond the maximum lag. A version that is
 * newer than the current one is refused.
 */
export function stalenessWeights(
  versions: ArrayLike<number>,
  current: number,
  options: Partial<StalenessSettings> = {},
): Float64Array {
  const defaults: StalenessSettings = { maximumLag: Number.POSITIVE_INFINITY, decay: 1 }
  const { maximumLag, decay } = readOptions('Staleness', defaults, options)
  if (!(maximumLag >= 0)) throw new RangeError(`The maximum lag must be ≥ 0, got ${maximumLag}.`)
  checkNumber('decay', decay, { low: 0, high: 1 })
  return Float64Array.from(versions, version => {
    const lag = current - version
    if (!(lag >= 0))
      throw new RangeError(`Version ${version} is newer than the current ${current}.`)
    return lag > maximumLag ? 0 : decay ** lag
  })
}

function ratiosOf(
  tokens: TwoEngines,
  { level, veto }: ImportanceSettings,
): { ratios: Float64Array; vetoed: ReadonlySet<number> } {
  const { tokensOf } = normalisers(tokens)
  const sums = new Float64Array(tokensOf.length)
  const vetoed = new Set<number>()
  eachTrained(tokens, (token, trajectory) => {
    const logRatio = tokens.trainerLogprobs[token]! - tokens.rolloutLogprobs[token]!
    sums[trajectory]! += logRatio
    if (Math.exp(logRatio) < veto) vetoed.add(trajectory)
  })
  const ratios = new Float64Array(tokens.mask.length)
  eachTrained(tokens, (token, trajectory) => {
    const own = tokens.trainerLogprobs[token]! - tokens.rolloutLogprobs[token]!
    const whole = sums[trajectory]!
    const logRatio =
      level === 'token' ? own : level === 'sequence' ? whole : whole / tokensOf[trajectory]!
    ratios[token] = Math.exp(Math.max(-limit, Math.min(limit, logRatio)))
  })
  return { ratios, vetoed }
}

function boundedWeight(ratio: number, { mode, low, high }: ImportanceSettings): number {
  if (mode === 'truncate') return Math.min(ratio, high)
  if (mode === 'clip') return Math.max(low, Math.min(ratio, high))
  if (ratio < low || ratio > high) return 0
  return mode === 'mask' ? ratio : 1
}

function sampleSpread(tokens: TokenBatch, weights: Float64Array) {
  let count = 0
  let total = 0
  let squares = 0
  eachTrained(tokens, token => {
    count++
    total += weights[token]!
    squares += weights[token]! ** 2
  })
  return {
    count,
    effectiveSampleShare: count === 0 ? 0 : (total * total) / (count * squares),
    chiSquare: count === 0 ? 0 : squares / count - 1,
  }
}

function averageToOne(tokens: TokenBatch, weights: Float64Array): void {
  let count = 0
  let total = 0
  eachTrained(tokens, token => {
    count++
    total += weights[token]!
  })
  if (total === 0) return
  eachTrained(tokens, token => {
    weights[token]! *= count / total
  })
}

function checkSettings({ level, mode, low, high, veto }: ImportanceSettings): void {
  checkWord('level', level, ['token', 'sequence', 'geometric'])
  checkWord('mode', mode, ['truncate', 'clip', 'mask', 'reject'])
  checkNumber('high', high, { low: Number.MIN_VALUE })
  checkNumber('low', low, { low: 0, high })
  checkNumber('veto', veto, { low: 0 })
  if (mode === 'truncate' && low !== 0) {
    throw new TypeError(`Truncation bounds above only, got low ${low}; use mode "clip".`)
  }
}
