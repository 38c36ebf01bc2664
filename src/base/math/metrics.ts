import {
  checkTrained,
  eachTrained,
  normalisers,
  type TokenBatch,
  type TokenNumbers,
} from './batch.ts'
import { checkNumber, checkWord, readOptions } from './options.ts'

/** What the metrics read; everything but the log-probabilities may be absent. */
export interface MeasuredTokens extends TokenBatch {
  readonly logprobs: TokenNumbers
  readonly oldLogprobs?: TokenNumbers
  readonly advantages?: TokenNumbers
  readonly entropies?: TokenNumbers
}

/**
 * Which distribution log-probabilities are about: the model's own (`raw`), the one divided by the sampling
 * temperature (`tempered`), or one cut to top-k or top-p and made to sum to 1 again (`renormalised`).
 */
export type LogprobBasis = 'raw' | 'tempered' | 'renormalised'

/** How clips are counted and what the numbers are about. */
export interface MetricSettings {
  readonly low: number
  readonly high: number
  /**
   * `token`: a ratio outside the bounds on the side where the advantage makes PPO clip it; `sequence`:
   * the same for a trajectory's mean log-ratio and mean advantage, as share of trajectories
   * (GSPO); `weight`: any token's ratio outside the bounds (CISPO).
   */
  readonly clips: 'token' | 'sequence' | 'weight'
  /** How many tokens of the largest divergence are named. */
  readonly top: number
  readonly basis: LogprobBasis
  /** The temperature that the tokens were sampled at; only reported, never used in a formula. */
  readonly temperature: number
}

/** A token at which the two policies differ much. */
export interface DivergentToken {
  readonly row: number
  readonly trajectory: number
  /** Its place within its row. */
  readonly position: number
  /** Its place within the batch's flat arrays. */
  readonly token: number
  readonly kl: number
  readonly ratio: number
  readonly logprob: number
  readonly oldLogprob: number
}

/** How a policy looks on its own trained tokens. */
export interface PolicyMetrics {
  /** In words: the distribution that every number here is about. */
  readonly about: string
  readonly tokens: number
  readonly meanLogprob: number
  /** exp(mean log-probability): the geometric mean probability of what was sampled. */
  readonly confidence: number
  /** Mean entropy, if entropies were given. */
  readonly entropy?: number
  /** Against the policy that sampled, if its log-probabilities were given. */
  readonly change?: PolicyChange
}

/** How far the policy moved, with d = log π − log π_old and r = e^d. */
export interface PolicyChange {
  readonly meanOldLogprob: number
  readonly meanDifference: number
  /** Mean of e^d − d − 1, an estimate of KL(π_old ‖ π). */
  readonly kl: number
  readonly maximumKl: number
  readonly minimumRatio: number
  readonly maximumRatio: number
  /** (Σr)² / (n Σr²), in (0, 1]. */
  readonly effectiveSampleShare: number
  /** Present if advantages were given (`weight` needs none). */
  readonly clipped?: { readonly low: number; readonly high: number }
  readonly top: readonly DivergentToken[]
}

const defaults: MetricSettings = {
  low: 0.2,
  high: 0.2,
  clips: 'token',
  top: 0,
  basis: 'raw',
  temperature: 1,
}

/**
 * Metrics of a policy on the trained tokens, from the log-probabilities as they are. Tempering cannot be
 * undone by multiplying with the temperature (the normaliser is gone), so nothing is scaled: the
 * numbers say what they are about. `undefined` when no token is trained.
 */
export function policyMetrics(
  tokens: MeasuredTokens,
  options: Partial<MetricSettings> = {},
): PolicyMetrics | undefined {
  const settings = readOptions('Metrics', defaults, options)
  checkSettings(settings)
  checkTrained(tokens, 'logprobs', tokens.logprobs)
  const whole = normalisers(tokens)
  if (whole.tokens === 0) return undefined
  const meanLogprob = trainedMean(tokens, tokens.logprobs)
  const { entropies, oldLogprobs } = tokens
  if (entropies !== undefined) checkTrained(tokens, 'entropies', entropies)
  return {
    about: distributionInWords(settings),
    tokens: whole.tokens,
    meanLogprob,
    confidence: Math.exp(meanLogprob),
    ...(entropies === undefined ? {} : { entropy: trainedMean(tokens, entropies) }),
    ...(oldLogprobs === undefined
      ? {}
      : { change: policyChange({ ...tokens, oldLogprobs }, settings) }),
  }
}

type Compared = MeasuredTokens & { readonly oldLogprobs: TokenNumbers }

function policyChange(tokens: Compared, settings: MetricSettings): PolicyChange {
  checkTrained(tokens, 'oldLogprobs', tokens.oldLogprobs)
  const sums = { count: 0, kl: 0, ratio: 0, squares: 0 }
  let maximumKl = 0
  let minimumRatio = Number.POSITIVE_INFINITY
  let maximumRatio = 0
  eachTrained(tokens, token => {
    const d = differenceAt(tokens, token)
    const ratio = Math.exp(d)
    const kl = Math.expm1(d) - d
    sums.count++
    sums.kl += kl
    sums.ratio += ratio
    sums.squares += ratio * ratio
    maximumKl = Math.max(maximumKl, kl)
    minimumRatio = Math.min(minimumRatio, ratio)
    maximumRatio = Math.max(maximumRatio, ratio)
  })
  const meanOldLogprob = trainedMean(tokens, tokens.oldLogprobs)
  const clipped = clipShares(tokens, settings)
  return {
    meanOldLogprob,
    meanDifference: trainedMean(tokens, tokens.logprobs) - meanOldLogprob,
    kl: sums.kl / sums.count,
    maximumKl,
    minimumRatio,
    maximumRatio,
    effectiveSampleShare: sums.ratio ** 2 / (sums.count * sums.squares),
    ...(clipped === undefined ? {} : { clipped }),
    top: mostDivergent(tokens, settings.top),
  }
}

function differenceAt(tokens: Compared, token: number): number {
  return tokens.logprobs[token]! - tokens.oldLogprobs[token]!
}

function clipShares(
  tokens: Compared,
  { low, high, clips }: MetricSettings,
): { low: number; high: number } | undefined {
  const { advantages } = tokens
  if (clips !== 'weight' && advantages === undefined) return undefined
  if (advantages !== undefined) checkTrained(tokens, 'advantages', advantages)
  const counts = { low: 0, high: 0, all: 0 }
  const count = (difference: number, advantage: number) => {
    const ratio = Math.exp(difference)
    if (ratio < 1 - low && (clips === 'weight' || advantage < 0)) counts.low++
    if (ratio > 1 + high && (clips === 'weight' || advantage > 0)) counts.high++
    counts.all++
  }
  if (clips === 'sequence') eachSequence(tokens, advantages!, count)
  else eachTrained(tokens, token => count(differenceAt(tokens, token), advantages?.[token] ?? 0))
  return { low: counts.low / counts.all, high: counts.high / counts.all }
}

/** Calls `visit` for every trajectory that trains a token, with the means over its tokens. */
function eachSequence(
  tokens: Compared,
  advantages: TokenNumbers,
  visit: (difference: number, advantage: number) => void,
): void {
  const { tokensOf } = normalisers(tokens)
  const differences = new Float64Array(tokensOf.length)
  const totals = new Float64Array(tokensOf.length)
  eachTrained(tokens, (token, trajectory) => {
    differences[trajectory]! += differenceAt(tokens, token)
    totals[trajectory]! += advantages[token]!
  })
  tokensOf.forEach((count, trajectory) => {
    if (count > 0) visit(differences[trajectory]! / count, totals[trajectory]! / count)
  })
}

/** The tokens of the largest divergence above 0, largest first. */
function mostDivergent(tokens: Compared, count: number): DivergentToken[] {
  if (count === 0) return []
  const found: DivergentToken[] = []
  let least = 0
  for (let row = 0; row < tokens.trajectory.length; row++) {
    const start = tokens.offsets[row]!
    for (let token = start; token < tokens.offsets[row + 1]!; token++) {
      if (tokens.mask[token] === 0) continue
      const d = differenceAt(tokens, token)
      const kl = Math.expm1(d) - d
      if (kl <= least) continue
      const place = { row, trajectory: tokens.trajectory[row]!, position: token - start, token }
      const logprobs = { logprob: tokens.logprobs[token]!, oldLogprob: tokens.oldLogprobs[token]! }
      found.push({ ...place, kl, ratio: Math.exp(d), ...logprobs })
      if (found.length < 2 * count) continue
      // Halved whenever it is full, so that a long batch never costs more than a short list.
      found.sort(byDivergence).length = count
      least = found.at(-1)!.kl
    }
  }
  return found.sort(byDivergence).slice(0, count)
}

function byDivergence(a: DivergentToken, b: DivergentToken): number {
  return b.kl - a.kl || a.token - b.token
}

function trainedMean(batch: TokenBatch, values: TokenNumbers): number {
  let total = 0
  let count = 0
  eachTrained(batch, token => {
    total += values[token]!
    count++
  })
  return total / count
}

function distributionInWords({ basis, temperature }: MetricSettings): string {
  if (basis === 'raw') return `the model's own distribution (sampled at temperature ${temperature})`
  if (basis === 'tempered') return `the distribution at temperature ${temperature}`
  return `the distribution at temperature ${temperature}, cut and made to sum to 1 again`
}

function checkSettings({ low, high, clips, top, basis, temperature }: MetricSettings): void {
  checkNumber('low', low, { low: 0 })
  checkNumber('high', high, { low: 0 })
  checkNumber('temperature', temperature, { low: 0 })
  checkWord('clips', clips, ['token', 'sequence', 'weight'])
  checkWord('basis', basis, ['raw', 'tempered', 'renormalised'])
  if (!(Number.isInteger(top) && top >= 0)) throw new RangeError(`top must be a count, got ${top}.`)
  if (temperature === 0 && basis !== 'raw') {
    throw new RangeError(
      `There is no ${basis} distribution at temperature 0: greedy tokens have raw log-probabilities.`,
    )
  }
}
