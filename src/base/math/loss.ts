import { type Aggregation, tokenShares } from './aggregation.ts'
import {
  checkTrained,
  eachTrained,
  type Normalisers,
  normalisers,
  type TokenBatch,
  type TokenNumbers,
} from './batch.ts'
import { type KlPenalty, klPenalty } from './kl.ts'
import { checkNumber } from './options.ts'

/** What a policy loss reads, one number per token. */
export interface PolicyTokens extends TokenBatch {
  /** Under the policy that is being trained. */
  readonly logprobs: TokenNumbers
  readonly advantages: TokenNumbers
  /** Under the policy that the ratio starts from. Absent: the current one, so every ratio is 1. */
  readonly oldLogprobs?: TokenNumbers
  /** Under the reference policy; needed by a KL penalty. */
  readonly refLogprobs?: TokenNumbers
  /** Of the trained policy's distribution at each token; needed by an entropy bonus. */
  readonly entropies?: TokenNumbers
  /** Importance weights: they multiply a token's policy loss and count in no mean. Absent: 1. */
  readonly importance?: TokenNumbers
}

/** The settings of every policy loss, beside its own options. */
export interface LossSettings {
  readonly aggregation: Aggregation
  /** Of the whole batch, when the tokens are a micro-batch. Absent: of the tokens given. */
  readonly normalisers: Normalisers | undefined
  /** Adds β · KL to every token's loss. */
  readonly kl: KlPenalty | undefined
  /** Subtracts this many times its entropy from every token's loss. */
  readonly entropy: number
}

/** A loss and how it changes. Everything sums over the micro-batches of a batch. */
export interface LossResult {
  readonly loss: number
  /** d loss / d logprobs; 0 at context tokens. */
  readonly gradient: Float64Array
  /** d loss / d entropies; only if an entropy bonus was asked for. */
  readonly entropyGradient?: Float64Array
  /** The parts of the loss: they sum to it. */
  readonly terms: { readonly policy: number; readonly kl: number; readonly entropy: number }
  /** Shares of the whole batch's trained tokens whose loss was clipped below, above, or dually. */
  readonly clipped: { readonly low: number; readonly high: number; readonly dual: number }
}

/** Where a token's loss left the trusted region. */
export type Clip = 'none' | 'low' | 'high' | 'dual'

/** The policy term before KL and entropy: its value, its gradient, and what was clipped. */
export interface PolicyTerm {
  readonly value: number
  readonly gradient: Float64Array
  readonly clips: ReadonlyMap<Clip, number>
}

/** The settings that a loss starts from unless it says otherwise. */
export function lossDefaults(aggregation: Aggregation): LossSettings {
  return { aggregation, normalisers: undefined, kl: undefined, entropy: 0 }
}

/** Adds the KL penalty and the entropy bonus to a loss's policy term, all with the same shares. */
export function completeLoss(
  tokens: PolicyTokens,
  settings: LossSettings,
  policyTerm: (shares: Float64Array, whole: Normalisers) => PolicyTerm,
): LossResult {
  checkTokens(tokens)
  const whole = settings.normalisers ?? normalisers(tokens)
  const shares = tokenShares(tokens, settings.aggregation, whole)
  const policy = policyTerm(shares, whole)
  const kl =
    settings.kl === undefined ? 0 : addKl(tokens, shares, { ...policy, penalty: settings.kl })
  const bonus = entropyBonus(tokens, shares, settings.entropy)
  const share = (clip: Clip) => (policy.clips.get(clip) ?? 0) / Math.max(1, whole.tokens)
  return {
    loss: policy.value + kl + bonus.value,
    gradient: policy.gradient,
    ...(bonus.gradient === undefined ? {} : { entropyGradient: bonus.gradient }),
    terms: { policy: policy.value, kl, entropy: bonus.value },
    clipped: { low: share('low'), high: share('high'), dual: share('dual') },
  }
}

/** log π − log π_old at a token, 0 without old log-probabilities. */
export function logRatioAt(tokens: PolicyTokens, token: number): number {
  return tokens.oldLogprobs === undefined ? 0 : tokens.logprobs[token]! - tokens.oldLogprobs[token]!
}

/** A share with its token's importance weight, as the policy term uses it. */
export function policyShare(tokens: PolicyTokens, shares: Float64Array, token: number): number {
  return shares[token]! * (tokens.importance?.[token] ?? 1)
}

function addKl(
  tokens: PolicyTokens,
  shares: Float64Array,
  { gradient, penalty }: { gradient: Float64Array; penalty: KlPenalty },
): number {
  const { refLogprobs } = tokens
  if (refLogprobs === undefined) {
    throw new TypeError('A KL penalty needs refLogprobs, and the tokens have none.')
  }
  checkTrained(tokens, 'refLogprobs', refLogprobs)
  const penaltyAt = klPenalty(penalty)
  let total = 0
  eachTrained(tokens, token => {
    const { value, slope } = penaltyAt(tokens.logprobs[token]! - refLogprobs[token]!)
    total += shares[token]! * value
    gradient[token]! += shares[token]! * slope
  })
  return total
}

function entropyBonus(
  tokens: PolicyTokens,
  shares: Float64Array,
  coefficient: number,
): { value: number; gradient?: Float64Array } {
  checkNumber('The entropy coefficient', coefficient)
  if (coefficient === 0) return { value: 0 }
  const { entropies } = tokens
  if (entropies === undefined) {
    throw new TypeError('An entropy bonus needs entropies, and the tokens have none.')
  }
  checkTrained(tokens, 'entropies', entropies)
  const gradient = new Float64Array(shares.length)
  let value = 0
  eachTrained(tokens, token => {
    value -= coefficient * shares[token]! * entropies[token]!
    gradient[token] = -coefficient * shares[token]!
  })
  return { value, gradient }
}

function checkTokens(tokens: PolicyTokens): void {
  checkTrained(tokens, 'logprobs', tokens.logprobs)
  checkTrained(tokens, 'advantages', tokens.advantages)
  if (tokens.oldLogprobs !== undefined) checkTrained(tokens, 'oldLogprobs', tokens.oldLogprobs)
  if (tokens.importance !== undefined) checkTrained(tokens, 'importance', tokens.importance)
}
