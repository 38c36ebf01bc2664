import { type LossResult, type LossSettings, lossDefaults, type PolicyTokens } from '../loss.ts'
import { checkNumber, readOptions } from '../options.ts'
import { type TokenPoint, type TokenTerm, tokenLoss } from './token-loss.ts'

/** The trust region around ratio 1. */
export interface ClipSettings {
  /** ε below: the ratio counts down to 1 − low. */
  readonly low: number
  /** ε above: the ratio counts up to 1 + high (DAPO's clip-higher sets it apart from `low`). */
  readonly high: number
}

/** PPO's own options with the common ones. */
export interface PpoSettings extends LossSettings, ClipSettings {
  /** c of the dual clip: with A < 0 the loss never exceeds −cA. Infinity turns it off. */
  readonly dual: number
}

const ppoDefaults: PpoSettings = {
  ...lossDefaults({ kind: 'token-mean' }),
  low: 0.2,
  high: 0.2,
  dual: 3,
}

/**
 * PPO's clipped surrogate, −min(rA, clip(r, 1−ε, 1+ε')A) (Schulman et al. 2017, arXiv 1707.06347),
 * with the dual clip min(·, −cA) for A < 0 (Ye et al. 2019, arXiv 1912.09729).
 */
export function ppoLoss(tokens: PolicyTokens, options: Partial<PpoSettings> = {}): LossResult {
  const settings = readOptions('The ppo loss', ppoDefaults, options)
  checkClip(settings)
  if (!(settings.dual > 1)) {
    throw new RangeError(`The dual clip must be greater than 1, got ${settings.dual}.`)
  }
  return tokenLoss(tokens, settings, point => clippedTerm(point, settings))
}

/** GRPO, BNPO and Dr. GRPO as Twinkle has them: PPO's clip without the dual one. */
export type GrpoSettings = Omit<PpoSettings, 'dual'>

const grpoDefaults: GrpoSettings = {
  ...lossDefaults({ kind: 'sequence-mean-token-mean' }),
  low: 0.2,
  high: 0.2,
}

/** GRPO: each trajectory's mean, then the mean of those (Shao et al. 2024, arXiv 2402.03300). */
export function grpoLoss(tokens: PolicyTokens, options: Partial<GrpoSettings> = {}): LossResult {
  const settings = readOptions('The grpo loss', grpoDefaults, options)
  return ppoLoss(tokens, { ...settings, dual: Number.POSITIVE_INFINITY })
}

/** BNPO's normaliser: GRPO's token losses averaged over all tokens of the batch. */
export function bnpoLoss(
  tokens: PolicyTokens,
  options: Partial<Omit<GrpoSettings, 'aggregation'>> = {},
): LossResult {
  const { aggregation: _, ...defaults } = grpoDefaults
  const settings = readOptions('The bnpo loss', defaults, options)
  return grpoLoss(tokens, { ...settings, aggregation: { kind: 'token-mean' } })
}

/** Dr. GRPO's constant in place of every length. */
export interface DrGrpoSettings extends Omit<GrpoSettings, 'aggregation'> {
  /** The longest a trajectory's trained tokens can be. */
  readonly length: number
}

/**
 * Dr. GRPO: token losses summed and divided by (trajectories · length), so that long answers are
 * not favoured (Liu et al. 2025, arXiv 2503.20783).
 */
export function drGrpoLoss(
  tokens: PolicyTokens,
  options: Partial<DrGrpoSettings> = {},
): LossResult {
  const { aggregation: _, ...defaults } = grpoDefaults
  const settings = readOptions('The dr-grpo loss', { ...defaults, length: 1024 }, options)
  const { length, ...rest } = settings
  return grpoLoss(tokens, { ...rest, aggregation: { kind: 'sequence-mean-token-sum', length } })
}

/** Refuses a trust region that is not one. */
export function checkClip({ low, high }: ClipSettings): void {
  checkNumber('The clip below', low, { low: 0, high: 1 })
  checkNumber('The clip above', high, { low: 0 })
}

/** −min(rA, clip(r)A), dually clipped, at one token. */
function clippedTerm(point: TokenPoint, { low, high, dual }: PpoSettings): TokenTerm {
  const { ratio, ratioSlope, advantage } = point
  const trusted = Math.max(1 - low, Math.min(1 + high, ratio))
  const free = -advantage * ratio
  const held = -advantage * trusted
  if (held > free) return { value: held, slope: 0, clip: ratio < trusted ? 'low' : 'high' }
  const ceiling = -advantage * dual
  if (advantage < 0 && free > ceiling) return { value: ceiling, slope: 0, clip: 'dual' }
  return { value: free, slope: -advantage * ratioSlope, clip: 'none' }
}
