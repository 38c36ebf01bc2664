import { type LossResult, type LossSettings, lossDefaults, type PolicyTokens } from '../loss.ts'
import { checkWord, readOptions } from '../options.ts'
import { type ClipSettings, checkClip } from './ppo.ts'
import { type SequenceShape, type Sloped, sequenceLoss } from './sequence-loss.ts'
import { logRatioLimit } from './token-loss.ts'

/** GSPO's trust region, and the form of its gradient. */
export interface GspoSettings extends LossSettings, ClipSettings {
  /** `token` is GSPO-token, for advantages that vary inside a trajectory. */
  readonly gradient: SequenceShape['gradient']
}

const defaults: GspoSettings = {
  ...lossDefaults({ kind: 'sequence-mean-token-mean' }),
  low: 3e-4,
  high: 4e-4,
  gradient: 'sequence',
}

/** e^10: no trajectory's mean ratio gets further, as in verl. */
const meanLimit = 10

/**
 * GSPO: PPO's clip on one ratio per trajectory, s = exp(1/|y| Σ_t log π/π_old) (Zheng et al. 2025,
 * arXiv 2507.18071). The bounds are the paper's: a mean over a long answer moves little.
 */
export function gspoLoss(tokens: PolicyTokens, options: Partial<GspoSettings> = {}): LossResult {
  const settings = readOptions('The gspo loss', defaults, options)
  checkClip(settings)
  checkWord('The gradient', settings.gradient, ['sequence', 'token'])
  return sequenceLoss(tokens, settings, {
    shape: heldLogRatio,
    loss: (logRatio, advantage) => {
      const ratio = Math.exp(Math.min(logRatio, meanLimit))
      const trusted = Math.max(1 - settings.low, Math.min(1 + settings.high, ratio))
      const free = -advantage * ratio
      const held = -advantage * trusted
      if (held > free) return { value: held, slope: 0, clip: ratio < trusted ? 'low' : 'high' }
      return { value: free, slope: logRatio > meanLimit ? 0 : free, clip: 'none' }
    },
    countEpsilon: 0,
    gradient: settings.gradient,
  })
}

/** A token's log-ratio, held at the limit, where its derivative ends. */
function heldLogRatio(logRatio: number): Sloped & { readonly clip: 'none' } {
  if (Math.abs(logRatio) <= logRatioLimit) return { value: logRatio, slope: 1, clip: 'none' }
  return { value: Math.sign(logRatio) * logRatioLimit, slope: 0, clip: 'none' }
}
