import { type LossResult, type LossSettings, lossDefaults, type PolicyTokens } from '../loss.ts'
import { readOptions } from '../options.ts'
import { tokenLoss } from './token-loss.ts'

/**
 * The plain policy gradient, −A log π, without ratio or clip (GPG, Chu et al. 2025, arXiv 2504.02546).
 * Old log-probabilities are not read: it is meant for data sampled by the policy being trained.
 */
export function gpgLoss(tokens: PolicyTokens, options: Partial<LossSettings> = {}): LossResult {
  const settings = readOptions('The gpg loss', lossDefaults({ kind: 'token-mean' }), options)
  return tokenLoss(tokens, settings, ({ advantage, logprob }) => ({
    value: -advantage * logprob,
    slope: -advantage,
    clip: 'none',
  }))
}
