import { checkTrained, eachTrained, type TokenBatch, type TokenNumbers } from '../batch.ts'
import { checkNumber, readOptions } from '../options.ts'

/** Two trajectories of one task, by their indices in the batch. */
export interface Preference {
  readonly chosen: number
  readonly rejected: number
}

/** Tokens of chosen and rejected trajectories under the trained and the reference policy. */
export interface PreferenceTokens extends TokenBatch {
  readonly logprobs: TokenNumbers
  readonly refLogprobs: TokenNumbers
}

/** DPO's options. */
export interface DpoSettings {
  /** β: how strongly the reference holds. */
  readonly beta: number
  /** The chance that a preference is the wrong way round (conservative DPO). */
  readonly smoothing: number
  /** Pairs of the whole batch, when these are a micro-batch. Absent: the pairs given. */
  readonly pairs: number | undefined
}

/** A preference loss and how well the policy already tells chosen from rejected. */
export interface DpoResult {
  readonly loss: number
  readonly gradient: Float64Array
  /** Share of pairs whose chosen one has the higher implicit reward. */
  readonly accuracy: number
  /** Mean β-scaled difference of the implicit rewards. */
  readonly margin: number
}

/**
 * DPO: −(1−s) log σ(βh) − s log σ(−βh), with h the chosen trajectory's Σ log π/π_ref less the rejected
 * one's, averaged over pairs (Rafailov et al. 2023, arXiv 2305.18290). A trajectory's trained tokens in
 * all its rows are summed; both trajectories of a pair must be in the same micro-batch.
 */
export function dpoLoss(
  tokens: PreferenceTokens,
  preferences: readonly Preference[],
  options: Partial<DpoSettings> = {},
): DpoResult {
  const defaults: DpoSettings = { beta: 0.1, smoothing: 0, pairs: undefined }
  const settings = readOptions('The dpo loss', defaults, options)
  const { beta, smoothing, pairs = preferences.length } = settings
  checkNumber('beta', beta, { low: Number.MIN_VALUE })
  checkNumber('smoothing', smoothing, { low: 0, high: 0.5 })
  const sums = logRatioSums(tokens)
  const slopes = new Map<number, number>()
  const totals = { loss: 0, right: 0, margin: 0 }
  for (const { chosen, rejected } of preferences) {
    const h = beta * (sumOf(sums, chosen) - sumOf(sums, rejected))
    totals.loss += (1 - smoothing) * softplus(-h) + smoothing * softplus(h)
    totals.right += h > 0 ? 1 : 0
    totals.margin += h
    const slope = (beta * (sigmoid(h) - (1 - smoothing))) / pairs
    slopes.set(chosen, (slopes.get(chosen) ?? 0) + slope)
    slopes.set(rejected, (slopes.get(rejected) ?? 0) - slope)
  }
  const gradient = new Float64Array(tokens.mask.length)
  eachTrained(tokens, (token, trajectory) => {
    gradient[token] = slopes.get(trajectory) ?? 0
  })
  const mean = (total: number) => (pairs === 0 ? 0 : total / pairs)
  return {
    loss: mean(totals.loss),
    gradient,
    accuracy: mean(totals.right),
    margin: mean(totals.margin),
  }
}

function logRatioSums(tokens: PreferenceTokens): ReadonlyMap<number, number> {
  checkTrained(tokens, 'logprobs', tokens.logprobs)
  checkTrained(tokens, 'refLogprobs', tokens.refLogprobs)
  const sums = new Map<number, number>()
  eachTrained(tokens, (token, trajectory) => {
    const logRatio = tokens.logprobs[token]! - tokens.refLogprobs[token]!
    sums.set(trajectory, (sums.get(trajectory) ?? 0) + logRatio)
  })
  return sums
}

function sumOf(sums: ReadonlyMap<number, number>, trajectory: number): number {
  const sum = sums.get(trajectory)
  if (sum !== undefined) return sum
  throw new RangeError(`A preference names trajectory ${trajectory}, which trains no token here.`)
}

/** log(1 + e^x), without overflow. */
function softplus(x: number): number {
  return Math.max(x, 0) + Math.log1p(Math.exp(-Math.abs(x)))
}

function sigmoid(x: number): number {
  return x >= 0 ? 1 / (1 + Math.exp(-x)) : Math.exp(x) / (1 + Math.exp(x))
}
