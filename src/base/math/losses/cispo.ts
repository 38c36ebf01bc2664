import { type LossResult, type LossSettings, lossDefaults, type PolicyTokens } from '../loss.ts'
import { checkNumber, readOptions } from '../options.ts'
import { tokenLoss } from './token-loss.ts'

/** CISPO's bounds on the importance weight. */
export interface CispoSettings extends LossSettings {
  /** The weight is at least 1 − low. Infinity leaves it open below, as Twinkle does. */
  readonly low: number
  /** The weight is at most 1 + high. */
  readonly high: number
}

const defaults: CispoSettings = {
  ...lossDefaults({ kind: 'token-mean' }),
  low: 0.2,
  high: 0.2,
}

/**
 * CISPO, −sg(clip(r, 1−ε, 1+ε')) · A · log π: the weight is clipped, never the token, so every token
 * keeps a gradient (MiniMax-M1, arXiv 2506.13585). The weight is a constant: sg stops its gradient.
 */
export function cispoLoss(tokens: PolicyTokens, options: Partial<CispoSettings> = {}): LossResult {
  const settings = readOptions('The cispo loss', defaults, options)
  if (!(settings.low >= 0)) throw new RangeError(`The clip below must be ≥ 0, got ${settings.low}.`)
  checkNumber('The clip above', settings.high, { low: 0 })
  return tokenLoss(tokens, settings, ({ ratio, advantage, logprob }) => {
    const weight = Math.max(1 - settings.low, Math.min(1 + settings.high, ratio))
    return {
      value: -weight * advantage * logprob,
      slope: -weight * advantage,
      clip: weight === ratio ? 'none' : weight > ratio ? 'low' : 'high',
    }
  })
}
