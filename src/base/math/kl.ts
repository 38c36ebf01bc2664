import { checkTrained, eachTrained, type TokenBatch, type TokenNumbers } from './batch.ts'
import { checkNumber, named, readOptions } from './options.ts'

/** An estimate of a divergence at one token, and its derivative in the token's log-probability. */
export interface KlTerm {
  readonly value: number
  readonly slope: number
}

/**
 * Estimates of KL(π ‖ reference) from one sampled token, with d = log π − log reference
 * (Schulman 2020, "Approximating KL divergence"):
 * - `k1`: d, unbiased, noisy
 * - `k2`: d² / 2, biased, low variance; its gradient is that of the true divergence
 * - `k3`: e^−d − 1 + d, unbiased, never negative
 * - `absolute`: |d|
 */
export const klNames = ['k1', 'k2', 'k3', 'absolute'] as const

/** One of the four estimators. */
export type KlEstimator = (typeof klNames)[number]

const estimators: Readonly<Record<KlEstimator, (d: number) => KlTerm>> = {
  k1: d => ({ value: d, slope: 1 }),
  k2: d => ({ value: (d * d) / 2, slope: d }),
  k3: d => ({ value: Math.expm1(-d) + d, slope: -Math.expm1(-d) }),
  absolute: d => ({ value: Math.abs(d), slope: Math.sign(d) }),
}

/** The estimate at log-ratio d. */
export function klTerm(estimator: KlEstimator, d: number): KlTerm {
  return named('KL estimator', estimators, estimator)(d)
}

/**
 * k3 as verl and slime bound it: d is clamped to ±20 and the estimate to ±10; beyond a bound the
 * gradient is 0.
 */
export function boundedK3(d: number): KlTerm {
  const { value, slope } = klTerm('k3', Math.max(-20, Math.min(20, d)))
  return value > 10 || Math.abs(d) > 20
    ? { value: Math.min(value, 10), slope: 0 }
    : { value, slope }
}

/** A penalty on the distance from a reference policy. */
export interface KlPenalty {
  /** β. */
  readonly coefficient: number
  /** @default 'k3' */
  readonly estimator?: KlEstimator
  /** Bounds k3 as verl does, against overflow. @default false */
  readonly bounded?: boolean
  /** Keeps the estimate's value but takes the gradient of k2 (verl's "+"). @default false */
  readonly straightThrough?: boolean
}

/** The penalty at one token as a function of d, or an error about the options. */
export function klPenalty(penalty: KlPenalty): (d: number) => KlTerm {
  const defaults: Required<KlPenalty> = {
    coefficient: 0,
    estimator: 'k3',
    bounded: false,
    straightThrough: false,
  }
  const settings = readOptions('A KL penalty', defaults, penalty)
  const { coefficient, estimator, bounded, straightThrough } = settings
  checkNumber('The KL coefficient', coefficient, { low: 0 })
  if (bounded && estimator !== 'k3') {
    throw new TypeError(`Only k3 is bounded, got estimator "${estimator}".`)
  }
  const estimate = named('KL estimator', estimators, estimator)
  return d => {
    const { value, slope } = bounded ? boundedK3(d) : estimate(d)
    return { value: coefficient * value, slope: coefficient * (straightThrough ? d : slope) }
  }
}

/**
 * KL in the reward: r_t − β k_t on the trained tokens, from the log-probabilities that sampled them.
 * The estimates are constants there, so no gradient flows through them.
 */
export function penalisedRewards(
  batch: TokenBatch & { readonly logprobs: TokenNumbers; readonly refLogprobs: TokenNumbers },
  rewards: TokenNumbers,
  penalty: KlPenalty,
): Float64Array {
  checkTrained(batch, 'logprobs', batch.logprobs)
  checkTrained(batch, 'refLogprobs', batch.refLogprobs)
  checkTrained(batch, 'rewards', rewards)
  const penaltyAt = klPenalty(penalty)
  const penalised = new Float64Array(rewards.length)
  eachTrained(batch, token => {
    const d = batch.logprobs[token]! - batch.refLogprobs[token]!
    penalised[token] = rewards[token]! - penaltyAt(d).value
  })
  return penalised
}

/** How an adaptive KL coefficient moves. */
export interface KlTarget {
  readonly target: number
  readonly horizon: number
}

/**
 * The next β: β · (1 + clip(KL/target − 1, ±0.2) · n / horizon), with n the trajectories seen since the
 * last change (Ziegler et al. 2019, arXiv 1909.08593).
 */
export function nextKlCoefficient(
  coefficient: number,
  measured: { readonly kl: number; readonly trajectories: number },
  { target, horizon }: KlTarget,
): number {
  checkNumber('The KL target', target, { low: Number.MIN_VALUE })
  checkNumber('The horizon', horizon, { low: Number.MIN_VALUE })
  const error = Math.max(-0.2, Math.min(0.2, measured.kl / target - 1))
  return coefficient * (1 + (error * measured.trajectories) / horizon)
}
