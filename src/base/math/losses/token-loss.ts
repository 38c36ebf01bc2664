import { eachTrained } from '../batch.ts'
import {
  type Clip,
  completeLoss,
  type LossResult,
  type LossSettings,
  logRatioAt,
  type PolicyTokens,
  policyShare,
} from '../loss.ts'

/** What the loss of one token may look at. */
export interface TokenPoint {
  /** π / π_old, its logarithm clamped to ±20. */
  readonly ratio: number
  /** d ratio / d logprob: the ratio itself, or 0 beyond the clamp. */
  readonly ratioSlope: number
  readonly advantage: number
  readonly logprob: number
}

/** A token's loss, its derivative in the log-probability, and whether it was clipped. */
export interface TokenTerm {
  readonly value: number
  readonly slope: number
  readonly clip: Clip
}

/** How far a log-ratio may go before it is held: e^20 is far beyond any trust region. */
export const logRatioLimit = 20

/** A loss in which every token stands for itself. */
export function tokenLoss(
  tokens: PolicyTokens,
  settings: LossSettings,
  termAt: (point: TokenPoint) => TokenTerm,
): LossResult {
  return completeLoss(tokens, settings, shares => {
    const gradient = new Float64Array(shares.length)
    const clips = new Map<Clip, number>()
    let total = 0
    eachTrained(tokens, token => {
      const { value, slope, clip } = termAt(pointAt(tokens, token))
      const share = policyShare(tokens, shares, token)
      total += share * value
      gradient[token] = share * slope
      if (clip !== 'none') clips.set(clip, (clips.get(clip) ?? 0) + 1)
    })
    return { value: total, gradient, clips }
  })
}

function pointAt(tokens: PolicyTokens, token: number): TokenPoint {
  const logRatio = logRatioAt(tokens, token)
  const ratio = Math.exp(Math.max(-logRatioLimit, Math.min(logRatioLimit, logRatio)))
  return {
    ratio,
    ratioSlope: Math.abs(logRatio) > logRatioLimit ? 0 : ratio,
    advantage: tokens.advantages[token]!,
    logprob: tokens.logprobs[token]!,
  }
}
