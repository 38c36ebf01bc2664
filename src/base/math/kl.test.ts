import { describe, expect, it } from 'vitest'
import { batchOf } from '../../../test/fixtures/math-batch.ts'
import {
  boundedK3,
  type KlEstimator,
  klNames,
  klPenalty,
  klTerm,
  nextKlCoefficient,
  penalisedRewards,
} from './kl.ts'
import { random, seedOf } from './random.ts'

const next = random(seedOf('kl'))
const differences = Array.from({ length: 50 }, () => next() * 6 - 3)

describe('KL estimators', () => {
  it.each(klNames)('%s: its slope agrees with finite differences', estimator => {
    for (const d of differences) {
      const slope = (klTerm(estimator, d + 1e-6).value - klTerm(estimator, d - 1e-6).value) / 2e-6
      expect(klTerm(estimator, d).slope).toBeCloseTo(slope, 7)
    }
  })

  it('k1 and k3 average to the true divergence, and k3 has less variance', () => {
    const policy = [0.5, 0.3, 0.2]
    const reference = [0.4, 0.4, 0.2]
    const expectation = (f: (d: number) => number) =>
      policy.reduce((sum, p, token) => sum + p * f(Math.log(p / reference[token]!)), 0)
    const truth = expectation(d => d)
    expect(expectation(d => klTerm('k3', d).value)).toBeCloseTo(truth, 12)
    const variance = (name: KlEstimator) => expectation(d => (klTerm(name, d).value - truth) ** 2)
    expect(variance('k3')).toBeLessThan(variance('k1'))
  })

  it('k3 does not lose small differences to rounding', () => {
    expect(klTerm('k3', 1e-9).value).toBeGreaterThanOrEqual(0)
    expect(klTerm('k3', 1e-5).value).toBeCloseTo(5e-11, 15)
  })

  it('bounded k3 stays finite, and its slope ends at its bounds', () => {
    expect(boundedK3(-1000)).toEqual({ value: 10, slope: 0 })
    expect(boundedK3(1000)).toEqual({ value: 10, slope: 0 })
    expect(boundedK3(0.5)).toEqual(klTerm('k3', 0.5))
  })
})

describe('klPenalty', () => {
  it('straight-through keeps the value and takes the slope of k2', () => {
    const penalty = klPenalty({ coefficient: 2, estimator: 'k3', straightThrough: true })
    expect(penalty(0.7)).toEqual({ value: 2 * klTerm('k3', 0.7).value, slope: 1.4 })
  })

  it('refuses what it does not know', () => {
    expect(() => klPenalty({ coefficient: -1 })).toThrow('got -1')
    expect(() => klPenalty({ coefficient: 1, estimator: 'k4' as KlEstimator })).toThrow(
      'No KL estimator called "k4". Known: k1, k2, k3, absolute.',
    )
    expect(() => klPenalty({ coefficient: 1, estimator: 'k1', bounded: true })).toThrow('Only k3')
  })
})

describe('KL elsewhere', () => {
  it('in the reward it is taken off every trained token', () => {
    const batch = {
      ...batchOf([{ mask: [0, 1, 1] }]),
      logprobs: Float64Array.of(Number.NaN, -1, -2),
      refLogprobs: Float64Array.of(Number.NaN, -1.5, -1),
    }
    const penalty = { coefficient: 0.1, estimator: 'k1' } as const
    const rewards = penalisedRewards(batch, Float64Array.of(0, 0, 1), penalty)
    expect(Array.from(rewards)).toEqual([0, expect.closeTo(-0.05, 12), expect.closeTo(1.1, 12)])
  })

  it('an adaptive coefficient moves by at most a fifth per horizon', () => {
    const target = { target: 6, horizon: 100 }
    expect(nextKlCoefficient(0.2, { kl: 60, trajectories: 100 }, target)).toBeCloseTo(0.24, 12)
    expect(nextKlCoefficient(0.2, { kl: 0, trajectories: 50 }, target)).toBeCloseTo(0.18, 12)
    expect(nextKlCoefficient(0.2, { kl: 6, trajectories: 100 }, target)).toBe(0.2)
  })
})
