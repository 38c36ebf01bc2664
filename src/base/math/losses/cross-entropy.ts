import { type Aggregation, tokenShares } from '../aggregation.ts'
import {
  checkTrained,
  eachTrained,
  type Normalisers,
  normalisers,
  type TokenBatch,
  type TokenNumbers,
} from '../batch.ts'
import { readOptions } from '../options.ts'

/** Tokens to be imitated. Their `weights` say how much each counts. */
export interface SupervisedTokens extends TokenBatch {
  readonly logprobs: TokenNumbers
}

/** How the token losses are averaged. */
export interface CrossEntropySettings {
  readonly aggregation: Aggregation
  /** Of the whole batch, when the tokens are a micro-batch. */
  readonly normalisers: Normalisers | undefined
}

/** Cross-entropy, −log π of every trained token, weighted: Σ w (−log π) / Σ w unless told otherwise. */
export function crossEntropyLoss(
  tokens: SupervisedTokens,
  options: Partial<CrossEntropySettings> = {},
): { loss: number; gradient: Float64Array } {
  const defaults: CrossEntropySettings = {
    aggregation: { kind: 'token-mean' },
    normalisers: undefined,
  }
  const settings = readOptions('The cross-entropy loss', defaults, options)
  checkTrained(tokens, 'logprobs', tokens.logprobs)
  const whole = settings.normalisers ?? normalisers(tokens)
  const gradient = tokenShares(tokens, settings.aggregation, whole).map(share => -share)
  let loss = 0
  eachTrained(tokens, token => {
    loss += gradient[token]! * tokens.logprobs[token]!
  })
  return { loss, gradient }
}
