import { describe, expect, it } from 'vitest'
import {
  batchOf,
  cutRows,
  numericGradient,
  randomTokens,
  trained,
  wholeTrajectories,
} from '../../../../test/fixtures/math-batch.ts'
import { normalisers, selectRows } from '../batch.ts'
import { crossEntropyLoss } from './cross-entropy.ts'
import { dpoLoss } from './dpo.ts'

describe('crossEntropyLoss', () => {
  it('is the weighted mean of −log π', () => {
    const tokens = {
      ...batchOf([{ mask: [0, 1, 1] }]),
      logprobs: Float64Array.of(Number.NaN, -1, -4),
      weights: Float64Array.of(Number.NaN, 3, 1),
    }
    expect(crossEntropyLoss(tokens).loss).toBe(7 / 4)
    expect(Array.from(crossEntropyLoss(tokens).gradient)).toEqual([-0, -0.75, -0.25])
    const sum = { kind: 'constant', divisor: 1 } as const
    expect(crossEntropyLoss(tokens, { aggregation: sum }).loss).toBe(7)
  })

  it('agrees with finite differences, sums over micro-batches, ignores how rows were cut', () => {
    const aggregation = { kind: 'sequence-mean-token-mean' } as const
    for (let key = 0; key < 10; key++) {
      const tokens = randomTokens(key)
      const whole = crossEntropyLoss(tokens, { aggregation })
      const slopes = numericGradient(
        tokens,
        tokens.logprobs,
        logprobs => crossEntropyLoss({ ...tokens, logprobs }, { aggregation }).loss,
      )
      whole.gradient.forEach((slope, token) => {
        expect(slope).toBeCloseTo(slopes[token]!, 7)
      })
      const options = { aggregation, normalisers: normalisers(tokens) }
      const parts = Array.from(tokens.trajectory.keys(), row => selectRows(tokens, [row]))
      const sum = parts.reduce((total, part) => total + crossEntropyLoss(part, options).loss, 0)
      expect(sum).toBeCloseTo(whole.loss, 11)
      expect(crossEntropyLoss(cutRows(tokens, key), { aggregation }).loss).toBeCloseTo(
        whole.loss,
        11,
      )
    }
  })
})

describe('dpoLoss', () => {
  it('agrees with a calculation by hand', () => {
    const tokens = {
      ...batchOf([{ mask: [1, 1] }, { mask: [0, 1] }]),
      logprobs: Float64Array.of(-1, -1, Number.NaN, -3),
      refLogprobs: Float64Array.of(-1.5, -2, Number.NaN, -2),
    }
    // Chosen: 0.5 + 1 = 1.5; rejected: −1; h = 2.5 β.
    const { loss, accuracy, margin } = dpoLoss(tokens, [{ chosen: 0, rejected: 1 }], { beta: 0.4 })
    expect(loss).toBeCloseTo(Math.log(1 + Math.exp(-1)), 12)
    expect([accuracy, margin]).toEqual([1, 1])
    const wrong = dpoLoss(tokens, [{ chosen: 1, rejected: 0 }], { beta: 0.4, smoothing: 0.1 })
    const expected = 0.9 * Math.log(1 + Math.E) + 0.1 * Math.log(1 + Math.exp(-1))
    expect(wrong.loss).toBeCloseTo(expected, 12)
    expect(wrong.accuracy).toBe(0)
  })

  const pairs = [
    { chosen: 0, rejected: 1 },
    { chosen: 1, rejected: 0 },
    { chosen: 0, rejected: 1 },
  ]

  it('its gradient agrees with finite differences', () => {
    for (let key = 0; key < 10; key++) {
      const tokens = randomTokens(key)
      for (const smoothing of [0, 0.2]) {
        const options = { beta: 0.7, smoothing }
        const { gradient } = dpoLoss(tokens, pairs, options)
        const slopes = numericGradient(
          tokens,
          tokens.logprobs,
          logprobs => dpoLoss({ ...tokens, logprobs }, pairs, options).loss,
        )
        gradient.forEach((slope, token) => {
          expect(slope).toBeCloseTo(slopes[token]!, 7)
        })
      }
    }
  })

  it('ignores how rows were cut, and sums over micro-batches of whole pairs', () => {
    const tokens = randomTokens(4)
    const cut = cutRows(tokens, 4)
    const whole = dpoLoss(tokens, pairs)
    const after = dpoLoss(cut, pairs)
    expect(after.loss).toBeCloseTo(whole.loss, 12)
    trained(cut, after.gradient).forEach((slope, index) => {
      expect(slope).toBeCloseTo(trained(tokens, whole.gradient)[index]!, 12)
    })
    const [first, second] = wholeTrajectories(tokens)
    const both = selectRows(tokens, [...first!, ...second!])
    const parts = pairs.map(pair => dpoLoss(both, [pair], { pairs: pairs.length }).loss)
    expect(parts.reduce((sum, loss) => sum + loss, 0)).toBeCloseTo(whole.loss, 12)
  })

  it('stays finite at absurd margins, and refuses a trajectory that is not there', () => {
    const tokens = {
      ...batchOf([{ mask: [1] }, { mask: [1] }]),
      logprobs: Float64Array.of(-1e6, 0),
      refLogprobs: Float64Array.of(0, -1e6),
    }
    expect(dpoLoss(tokens, [{ chosen: 0, rejected: 1 }]).loss).toBeCloseTo(2e5, 6)
    expect(dpoLoss(tokens, [{ chosen: 1, rejected: 0 }]).loss).toBe(0)
    expect(() => dpoLoss(tokens, [{ chosen: 0, rejected: 2 }])).toThrow('names trajectory 2')
  })
})
