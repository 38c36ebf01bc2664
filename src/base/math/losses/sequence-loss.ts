import { eachTrained, type Normalisers } from '../batch.ts'
import {
  type Clip,
  completeLoss,
  type LossResult,
  type LossSettings,
  logRatioAt,
  type PolicyTerm,
  type PolicyTokens,
  policyShare,
} from '../loss.ts'

/** A number and its derivative. */
export interface Sloped {
  readonly value: number
  readonly slope: number
}

/** How a loss speaks about a trajectory's ratio exp(mean of its tokens' shaped log-ratios). */
export interface SequenceShape {
  /** The part of a token's log-ratio that enters the mean. */
  readonly shape: (logRatio: number, advantage: number) => Sloped & { readonly clip: Clip }
  /** A token's loss, and its derivative in the mean log-ratio. */
  readonly loss: (meanLogRatio: number, advantage: number) => Sloped & { readonly clip: Clip }
  /** Added to the number of tokens that the mean divides by. */
  readonly countEpsilon: number
  /**
   * `sequence`: the true gradient, through the mean to every token of the trajectory. `token`: each
   * token receives the derivative of its own loss (the stop-gradient form of GSPO-token). They are
   * the same if a trajectory's advantage and shares do not vary.
   */
  readonly gradient: 'sequence' | 'token'
}

/**
 * A loss with one ratio per trajectory. All rows of a trajectory must be in the same micro-batch,
 * for its ratio needs them all: a part of a trajectory is refused.
 */
export function sequenceLoss(
  tokens: PolicyTokens,
  settings: LossSettings,
  shape: SequenceShape,
): LossResult {
  return completeLoss(tokens, settings, (shares, whole) =>
    policyTerm(tokens, shares, { shape, whole }),
  )
}

function policyTerm(
  tokens: PolicyTokens,
  shares: Float64Array,
  { shape, whole }: { shape: SequenceShape; whole: Normalisers },
): PolicyTerm {
  const clips = new Map<Clip, number>()
  const count = (clip: Clip) => clip !== 'none' && clips.set(clip, (clips.get(clip) ?? 0) + 1)
  const shapeSlopes = new Float64Array(shares.length)
  const sums = new Float64Array(whole.tokensOf.length)
  const seen = new Int32Array(whole.tokensOf.length)
  eachTrained(tokens, (token, trajectory) => {
    const shaped = shape.shape(logRatioAt(tokens, token), tokens.advantages[token]!)
    sums[trajectory]! += shaped.value
    seen[trajectory]! += 1
    shapeSlopes[token] = shaped.slope
    count(shaped.clip)
  })
  checkWhole(seen, whole)
  const gradient = new Float64Array(shares.length)
  const slopeOf = new Float64Array(sums.length)
  let value = 0
  eachTrained(tokens, (token, trajectory) => {
    const mean = sums[trajectory]! / (seen[trajectory]! + shape.countEpsilon)
    const term = shape.loss(mean, tokens.advantages[token]!)
    const share = policyShare(tokens, shares, token)
    value += share * term.value
    slopeOf[trajectory]! += share * term.slope
    gradient[token] = share * term.slope * shapeSlopes[token]!
    count(term.clip)
  })
  if (shape.gradient === 'token') return { value, gradient, clips }
  eachTrained(tokens, (token, trajectory) => {
    const perToken = slopeOf[trajectory]! / (seen[trajectory]! + shape.countEpsilon)
    gradient[token] = perToken * shapeSlopes[token]!
  })
  return { value, gradient, clips }
}

function checkWhole(seen: Int32Array, whole: Normalisers): void {
  seen.forEach((count, trajectory) => {
    if (count === 0 || count === whole.tokensOf[trajectory]) return
    throw new RangeError(
      `Trajectory ${trajectory} has ${whole.tokensOf[trajectory]} trained tokens, but ${count} are in ` +
        'this micro-batch; a loss with one ratio per trajectory needs all its rows together.',
    )
  })
}
