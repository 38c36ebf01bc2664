import { type LossResult, type LossSettings, lossDefaults, type PolicyTokens } from '../loss.ts'
import { checkNumber, readOptions } from '../options.ts'
import { tokenLoss } from './token-loss.ts'

/** SAPO's temperatures: how steeply trust falls off around ratio 1. */
export interface SapoSettings extends LossSettings {
  /** τ for A > 0. */
  readonly positive: number
  /** τ for A ≤ 0; a little higher, because pushing a token down spreads over the vocabulary. */
  readonly negative: number
}

const defaults: SapoSettings = {
  ...lossDefaults({ kind: 'sequence-mean-token-mean' }),
  positive: 1,
  negative: 1.05,
}

/**
 * SAPO's soft gate in place of a clip, −A · (4/τ) σ(τ(r − 1)): at ratio 1 its gradient is the
 * policy gradient's, and it fades smoothly on both sides (Gao et al. 2025, arXiv 2511.20347).
 */
export function sapoLoss(tokens: PolicyTokens, options: Partial<SapoSettings> = {}): LossResult {
  const settings = readOptions('The sapo loss', defaults, options)
  checkNumber('The positive temperature', settings.positive, { low: Number.MIN_VALUE })
  checkNumber('The negative temperature', settings.negative, { low: Number.MIN_VALUE })
  return tokenLoss(tokens, settings, ({ ratio, ratioSlope, advantage }) => {
    const tau = advantage > 0 ? settings.positive : settings.negative
    const gate = 1 / (1 + Math.exp(-tau * (ratio - 1)))
    return {
      value: (-advantage * 4 * gate) / tau,
      slope: -advantage * 4 * gate * (1 - gate) * ratioSlope,
      clip: 'none',
    }
  })
}
