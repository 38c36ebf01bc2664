import { describe, expect, it } from 'vitest'
import { batchOf, numericGradient } from '../../../test/fixtures/math-batch.ts'
import { gpgLoss } from './losses/gpg.ts'
import { oracleBonus, oracleLoss, withOracle } from './oracle.ts'

const nothing = Number.NaN
const tokens = {
  ...batchOf([{ mask: [0, 1, 1] }, { mask: [1, 1] }]),
  logprobs: Float64Array.of(nothing, -1, -9, -1, -2),
  oracleLogprobs: Float64Array.of(nothing, -0.5, -0.1, nothing, nothing),
  positive: Uint8Array.of(1, 0),
}

describe('the oracle bonus', () => {
  it('is the clipped difference on positive trajectories, and reads no others', () => {
    expect(Array.from(oracleBonus(tokens))).toEqual([0, 0.5, 5, 0, 0])
    expect(Array.from(oracleBonus(tokens, { limit: 1, centre: true }))).toEqual([
      0, -0.25, 0.25, 0, 0,
    ])
  })

  it('subtracted from a loss it trains nothing; through advantages it does', () => {
    const bonus = oracleBonus(tokens)
    const advantages = Float64Array.of(0, 1, 1, -1, -1)
    const plain = { ...tokens, advantages }
    const upstream = (logprobs: Float64Array) =>
      gpgLoss({ ...plain, logprobs }).loss - 0.1 * bonus.reduce((sum, value) => sum + value, 0)
    const without = gpgLoss(plain).gradient
    // Upstream's draft: the loss moves by a constant, the slopes stay.
    expect(upstream(tokens.logprobs)).not.toBeCloseTo(gpgLoss(plain).loss, 3)
    numericGradient(tokens, tokens.logprobs, upstream).forEach((slope, token) => {
      expect(slope).toBeCloseTo(without[token]!, 8)
    })
    const shifted = gpgLoss({ ...plain, advantages: withOracle(advantages, bonus, 0.1) }).gradient
    expect(shifted[1]! - without[1]!).toBeCloseTo((-0.1 * 0.5) / 4, 12)
    expect(shifted[3]).toBe(without[3])
  })

  it('as a likelihood term its gradient agrees with finite differences', () => {
    const bonus = oracleBonus(tokens)
    const options = { coefficient: 0.2, aggregation: { kind: 'sequence-mean-token-mean' } } as const
    const slopes = numericGradient(
      tokens,
      tokens.logprobs,
      logprobs => oracleLoss({ ...tokens, logprobs }, bonus, options).loss,
    )
    oracleLoss(tokens, bonus, options).gradient.forEach((slope, token) => {
      expect(slope).toBeCloseTo(slopes[token]!, 8)
    })
    // It adds to −A log π exactly what the bonus in the advantage adds.
    const advantages = Float64Array.of(0, 1, 1, -1, -1)
    const { aggregation } = options
    const through = gpgLoss(
      { ...tokens, advantages: withOracle(advantages, bonus, 0.2) },
      { aggregation },
    )
    const added = oracleLoss(tokens, bonus, options)
    expect(gpgLoss({ ...tokens, advantages }, { aggregation }).loss + added.loss).toBeCloseTo(
      through.loss,
      12,
    )
  })

  it('a positive trajectory without trained tokens is harmless, an unknown one is not', () => {
    const empty = { ...tokens, mask: new Uint8Array(5) }
    expect(Array.from(oracleBonus(empty, { centre: true }))).toEqual([0, 0, 0, 0, 0])
    expect(() => oracleBonus({ ...tokens, positive: Uint8Array.of(1) })).toThrow(
      'Trajectory 1 has trained tokens, but success is known of 1',
    )
    expect(() => withOracle(new Float64Array(2), new Float64Array(3), 1)).toThrow(
      '2 advantages have 3',
    )
  })
})
