import { describe, expect, it } from 'vitest'
import { numericGradient, randomTokens } from '../../../../test/fixtures/math-batch.ts'
import { tokenShares } from '../aggregation.ts'
import { normalisers } from '../batch.ts'
import { cispoLoss } from './cispo.ts'
import { gspoLoss } from './gspo.ts'
import { ppoLoss } from './ppo.ts'

/** Losses whose published form holds a factor constant: the factor is frozen, the rest differs. */
describe('stopped gradients', () => {
  it.each([
    ['both sides', { low: 0.2, high: 0.28 }],
    ['above only', { low: Number.POSITIVE_INFINITY, high: 0.2 }],
  ])('cispo, clamped on %s: the weight is frozen, the log-probability is not', (_, clip) => {
    for (let key = 0; key < 10; key++) {
      const tokens = randomTokens(key, { varying: true })
      const shares = tokenShares(tokens, { kind: 'token-mean' }, normalisers(tokens))
      const frozen = tokens.logprobs.map((logprob, token) => {
        const ratio = Math.exp(logprob - tokens.oldLogprobs[token]!)
        return Math.max(1 - clip.low, Math.min(1 + clip.high, ratio))
      })
      const surrogate = (logprobs: Float64Array) =>
        logprobs.reduce((total, logprob, token) => {
          if (tokens.mask[token] === 0) return total
          const factor = frozen[token]! * tokens.advantages[token]! * tokens.importance[token]!
          return total - shares[token]! * factor * logprob
        }, 0)
      const { loss, gradient } = cispoLoss(tokens, clip)
      const slopes = numericGradient(tokens, tokens.logprobs, surrogate)
      expect(loss).toBeCloseTo(surrogate(Float64Array.from(tokens.logprobs)), 11)
      gradient.forEach((slope, token) => {
        expect(slope).toBeCloseTo(slopes[token]!, 7)
      })
    }
  })

  it('cispo keeps a gradient where ppo has none', () => {
    const tokens = randomTokens(2)
    const clipped = ppoLoss(tokens).gradient.filter((slope, t) => slope === 0 && tokens.mask[t])
    const kept = cispoLoss(tokens).gradient.filter((slope, t) => slope === 0 && tokens.mask[t])
    expect(clipped.length).toBeGreaterThan(0)
    expect(kept.length).toBe(0)
  })

  it('gspo-token equals gspo where a trajectory has one advantage and one share', () => {
    const { weights: _, importance: __, ...tokens } = randomTokens(8)
    const clip = { low: 0.05, high: 0.05 }
    const sequence = gspoLoss(tokens, { ...clip, gradient: 'sequence' })
    const token = gspoLoss(tokens, { ...clip, gradient: 'token' })
    expect(token.loss).toBe(sequence.loss)
    token.gradient.forEach((slope, index) => {
      expect(slope).toBeCloseTo(sequence.gradient[index]!, 12)
    })
  })

  it('gspo-token gives a token the slope of its own advantage', () => {
    const tokens = randomTokens(9, { varying: true })
    const options = { low: 1, high: 100, gradient: 'token' } as const
    const { gradient } = gspoLoss(tokens, options)
    const doubled = Float64Array.from(tokens.advantages)
    const first = tokens.mask.indexOf(1)
    doubled[first]! *= 2
    const changed = gspoLoss({ ...tokens, advantages: doubled }, options).gradient
    changed.forEach((slope, token) => {
      expect(slope).toBeCloseTo(gradient[token]! * (token === first ? 2 : 1), 12)
    })
  })
})
