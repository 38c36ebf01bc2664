import { type RewardedTrajectory, type SinglePolicy, spreadAdvantages } from '../advantage.ts'
import {
  checkBatch,
  checkTrained,
  rowCount,
  type TokenBatch,
  type TokenNumbers,
  whiten,
} from '../batch.ts'
import { type KlPenalty, penalisedRewards } from '../kl.ts'
import { checkNumber, readOptions } from '../options.ts'
import { drGrpoAdvantages } from './grpo.ts'

/** What REINFORCE++ reads beside the rewards: log-probabilities, if it penalises KL. */
export interface ReinforceTokens extends TokenBatch {
  readonly logprobs?: TokenNumbers
  readonly refLogprobs?: TokenNumbers
}

/** The settings of both forms. */
export interface ReinforceSettings {
  /** KL in the reward: r_t − β k_t. */
  readonly kl: KlPenalty | undefined
  /** Whether advantages are whitened over the batch's trained tokens. */
  readonly whiten: boolean
  /** Added to the number of tokens in the whitening; verl has 1e-8 there. */
  readonly countEpsilon: number
}

const defaults: ReinforceSettings = { kl: undefined, whiten: true, countEpsilon: 0 }

/**
 * REINFORCE++ (Hu 2025, arXiv 2501.03262): the trajectory's reward on its last trained token, less β KL
 * at each, summed backwards with discount γ, then whitened over the batch. Returns pass through
 * context and from row to row unchanged: a tool's answer neither resets nor discounts them.
 * Trajectory i of the batch is entry i.
 */
export function reinforcePlusPlusAdvantages(
  tokens: ReinforceTokens,
  entries: readonly RewardedTrajectory[],
  options: Partial<ReinforceSettings & { readonly gamma: number }> = {},
): Float64Array {
  const settings = readOptions('The reinforce++ advantage', { ...defaults, gamma: 1 }, options)
  const rewards = entries.map(entry => entry.reward)
  const placed = penalised(tokens, placeRewards(tokens, rewards), settings)
  return finished(tokens, tokenReturns(tokens, placed, settings.gamma), settings)
}

/** The baseline form's settings. */
export interface ReinforceBaselineSettings extends ReinforceSettings {
  readonly single: SinglePolicy
}

/**
 * REINFORCE++ with a baseline: r − mean of its group on every token, less β KL at each, whitened over
 * the batch. Trajectory i of the batch is entry i.
 */
export function reinforcePlusPlusBaselineAdvantages(
  tokens: ReinforceTokens,
  entries: readonly RewardedTrajectory[],
  options: Partial<ReinforceBaselineSettings> = {},
): Float64Array {
  const all: ReinforceBaselineSettings = { ...defaults, single: 'zero' }
  const settings = readOptions('The reinforce++-baseline advantage', all, options)
  const centred = drGrpoAdvantages(entries, { single: settings.single })
  return finished(tokens, penalised(tokens, spreadAdvantages(tokens, centred), settings), settings)
}

/**
 * A terminal reward as a reward per token: all of it once, on the last trained token of the
 * trajectory's last row. Trajectory i has rewards[i].
 */
export function placeRewards(
  batch: TokenBatch,
  rewards: readonly (number | undefined)[],
): Float64Array {
  checkBatch(batch)
  const placed = new Float64Array(batch.mask.length)
  const done = new Set<number>()
  for (let row = rowCount(batch) - 1; row >= 0; row--) {
    const trajectory = batch.trajectory[row]!
    if (done.has(trajectory)) continue
    const last = lastTrained(batch, row)
    if (last === undefined) continue
    placed[last] = scored(trajectory, rewards)
    done.add(trajectory)
  }
  return placed
}

/** G_t = r_t + γ G_{t+1} over the trained tokens of each trajectory, its rows taken as one. */
export function tokenReturns(
  batch: TokenBatch,
  rewards: TokenNumbers,
  gamma: number,
): Float64Array {
  checkNumber('gamma', gamma, { low: 0, high: 1 })
  checkTrained(batch, 'rewards', rewards)
  const returns = new Float64Array(batch.mask.length)
  const following = new Map<number, number>()
  for (let row = rowCount(batch) - 1; row >= 0; row--) {
    const trajectory = batch.trajectory[row]!
    let next = following.get(trajectory) ?? 0
    for (let token = batch.offsets[row + 1]! - 1; token >= batch.offsets[row]!; token--) {
      if (batch.mask[token] === 0) continue
      next = rewards[token]! + gamma * next
      returns[token] = next
    }
    following.set(trajectory, next)
  }
  return returns
}

function lastTrained(batch: TokenBatch, row: number): number | undefined {
  for (let token = batch.offsets[row + 1]! - 1; token >= batch.offsets[row]!; token--) {
    if (batch.mask[token] !== 0) return token
  }
  return undefined
}

function scored(trajectory: number, rewards: readonly (number | undefined)[]): number {
  const reward = rewards[trajectory]
  if (reward !== undefined && Number.isFinite(reward)) return reward
  throw new RangeError(
    `Trajectory ${trajectory} has trained tokens and reward ${reward}; ` +
      'one that was never scored must have mask 0.',
  )
}

function penalised(
  tokens: ReinforceTokens,
  rewards: Float64Array,
  { kl }: ReinforceSettings,
): Float64Array {
  if (kl === undefined) return rewards
  const { logprobs, refLogprobs } = tokens
  if (logprobs === undefined || refLogprobs === undefined) {
    throw new TypeError('KL in the reward needs logprobs and refLogprobs.')
  }
  return penalisedRewards({ ...tokens, logprobs, refLogprobs }, rewards, kl)
}

function finished(
  tokens: TokenBatch,
  values: Float64Array,
  settings: ReinforceSettings,
): Float64Array {
  return settings.whiten ? whiten(tokens, values, { countEpsilon: settings.countEpsilon }) : values
}
