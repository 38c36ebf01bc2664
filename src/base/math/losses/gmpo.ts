import { type LossResult, type LossSettings, lossDefaults, type PolicyTokens } from '../loss.ts'
import { checkNumber, readOptions } from '../options.ts'
import { type SequenceShape, sequenceLoss } from './sequence-loss.ts'
import { logRatioLimit } from './token-loss.ts'

/** GMPO's bounds, on log-ratios. */
export interface GmpoSettings extends LossSettings {
  /** A token's log-ratio counts down to −low where A < 0. */
  readonly low: number
  /** A token's log-ratio counts up to high where A > 0. */
  readonly high: number
  /** Added to the number of tokens in the geometric mean; verl has 1e-8 there. */
  readonly countEpsilon: number
}

const defaults: GmpoSettings = {
  ...lossDefaults({ kind: 'sequence-mean-token-mean' }),
  low: 0.4,
  high: 0.4,
  countEpsilon: 0,
}

/**
 * GMPO: −A · (Π_t r_t)^(1/|y|), the geometric mean of token ratios that are clipped one by one on the
 * side that would help (Zhao et al. 2025, arXiv 2507.20673).
 */
export function gmpoLoss(tokens: PolicyTokens, options: Partial<GmpoSettings> = {}): LossResult {
  const settings = readOptions('The gmpo loss', defaults, options)
  checkNumber('The clip below', settings.low, { low: 0 })
  checkNumber('The clip above', settings.high, { low: 0 })
  return sequenceLoss(tokens, settings, {
    shape: shapeOf(settings),
    loss: (mean, advantage) => {
      const value = -advantage * Math.exp(mean)
      return { value, slope: value, clip: 'none' }
    },
    countEpsilon: settings.countEpsilon,
    gradient: 'sequence',
  })
}

function shapeOf({ low, high }: GmpoSettings): SequenceShape['shape'] {
  return (logRatio, advantage) => {
    const bounded = Math.max(-logRatioLimit, Math.min(logRatioLimit, logRatio))
    if (advantage > 0 && bounded > high) return { value: high, slope: 0, clip: 'high' }
    if (advantage < 0 && bounded < -low) return { value: -low, slope: 0, clip: 'low' }
    // Without an advantage the ratio multiplies zero: it is left out, as sign(0) does in verl.
    if (advantage === 0) return { value: 0, slope: 0, clip: 'none' }
    return { value: bounded, slope: bounded === logRatio ? 1 : 0, clip: 'none' }
  }
}
