import { type Aggregation, tokenShares } from './aggregation.ts'
import {
  checkTrained,
  eachTrained,
  type Normalisers,
  normalisers,
  type TokenBatch,
  type TokenNumbers,
} from './batch.ts'
import { checkNumber, readOptions } from './options.ts'

/** Tokens scored twice by one scorer: under their own prompt and under the oracle's. */
export interface OracleTokens extends TokenBatch {
  readonly logprobs: TokenNumbers
  /** Under a prompt that holds the answer. Only read where `positive` is 1. */
  readonly oracleLogprobs: TokenNumbers
  /** Per trajectory index: 1 if it succeeded. The others have no bonus. */
  readonly positive: Uint8Array
}

/** How a bonus is bounded. */
export interface OracleSettings {
  /** The difference is held within ± this many nats. */
  readonly limit: number
  /** Subtract the mean over the tokens that have a bonus, so that it only shifts credit among them. */
  readonly centre: boolean
}

/**
 * The per-token oracle bonus: clip(log π(token | oracle prompt) − log π(token | prompt)) on the tokens of
 * trajectories that succeeded, 0 elsewhere. It is a constant of the parameters, so subtracting it
 * from a loss would train nothing: use `withOracle` or `oracleLoss`.
 */
export function oracleBonus(
  tokens: OracleTokens,
  options: Partial<OracleSettings> = {},
): Float64Array {
  const defaults: OracleSettings = { limit: 5, centre: false }
  const { limit, centre } = readOptions('The oracle bonus', defaults, options)
  checkNumber('limit', limit, { low: 0 })
  const positives = onlyPositive(tokens)
  checkTrained(positives, 'logprobs', tokens.logprobs)
  checkTrained(positives, 'oracleLogprobs', tokens.oracleLogprobs)
  const bonus = new Float64Array(tokens.mask.length)
  let total = 0
  let count = 0
  eachTrained(positives, token => {
    const difference = tokens.oracleLogprobs[token]! - tokens.logprobs[token]!
    bonus[token] = Math.max(-limit, Math.min(limit, difference))
    total += bonus[token]!
    count++
  })
  if (centre) eachTrained(positives, token => (bonus[token]! -= total / count))
  return bonus
}

/** The bonus through advantages: A_t + c · bonus_t, which every policy loss then differentiates. */
export function withOracle(
  advantages: TokenNumbers,
  bonus: TokenNumbers,
  coefficient: number,
): Float64Array {
  checkNumber('The oracle coefficient', coefficient)
  if (advantages.length !== bonus.length) {
    throw new RangeError(`${advantages.length} advantages have ${bonus.length} bonuses.`)
  }
  return Float64Array.from(advantages, (value, token) => value + coefficient * bonus[token]!)
}

/** What the likelihood form needs beside the bonus. */
export interface OracleLossOptions {
  readonly coefficient: number
  readonly aggregation: Aggregation
  /** Of the whole batch, when the tokens are a micro-batch. */
  readonly normalisers?: Normalisers
}

/**
 * The bonus as a weighted log-likelihood, Σ share · (−c · bonus_t · log π_t): a loss to add to the policy's,
 * whose gradient raises what the oracle likes and lowers what it does not.
 */
export function oracleLoss(
  tokens: TokenBatch & { readonly logprobs: TokenNumbers },
  bonus: TokenNumbers,
  options: OracleLossOptions,
): { loss: number; gradient: Float64Array } {
  const { coefficient, aggregation } = options
  checkNumber('The oracle coefficient', coefficient)
  checkTrained(tokens, 'logprobs', tokens.logprobs)
  checkTrained(tokens, 'bonus', bonus)
  const shares = tokenShares(tokens, aggregation, options.normalisers ?? normalisers(tokens))
  const gradient = new Float64Array(shares.length)
  let loss = 0
  eachTrained(tokens, token => {
    gradient[token] = -coefficient * shares[token]! * bonus[token]!
    loss += gradient[token]! * tokens.logprobs[token]!
  })
  return { loss, gradient }
}

function onlyPositive(tokens: OracleTokens): TokenBatch {
  const mask = new Uint8Array(tokens.mask.length)
  eachTrained(tokens, (token, trajectory) => {
    const positive = tokens.positive[trajectory]
    if (positive === undefined) {
      throw new RangeError(
        `Trajectory ${trajectory} has trained tokens, but success is known of ${tokens.positive.length}.`,
      )
    }
    mask[token] = positive === 0 ? 0 : 1
  })
  return { offsets: tokens.offsets, trajectory: tokens.trajectory, mask }
}
