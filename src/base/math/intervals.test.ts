import { describe, expect, it } from 'vitest'
import { bootstrapInterval, wilsonInterval } from './intervals.ts'
import { random, seedOf } from './random.ts'
import { quantile } from './statistics.ts'

describe('wilsonInterval', () => {
  it('agrees with published values', () => {
    // 15 of 20 at 95 %: Newcombe 1998's method 3 gives 0.5313 to 0.8881.
    const { low, high } = wilsonInterval(15, 20)
    expect(low).toBeCloseTo(0.5313, 4)
    expect(high).toBeCloseTo(0.8881, 4)
  })

  it('with z = 1.959963984540054 at 95 % and 2.5758293035489 at 99 %', () => {
    // With no successes the upper bound is z² / (n + z²), which gives z back.
    const zAt = (level: number) => {
      const { high } = wilsonInterval(0, 100, { level })
      return Math.sqrt((100 * high) / (1 - high))
    }
    expect(zAt(0.95)).toBeCloseTo(1.959963984540054, 12)
    expect(zAt(0.99)).toBeCloseTo(2.5758293035489, 12)
  })

  it('is closed at the ends and knows nothing without trials', () => {
    expect(wilsonInterval(0, 10).low).toBe(0)
    expect(wilsonInterval(10, 10).high).toBe(1)
    expect(wilsonInterval(0, 0)).toEqual({ low: 0, high: 1 })
  })

  it('refuses what is not a count or a level', () => {
    expect(() => wilsonInterval(3, 2)).toThrow('3 successes in 2 trials')
    const misspelt = { levle: 0.9 } as { level?: number }
    expect(() => wilsonInterval(1, 2, misspelt)).toThrow('has no option "levle". Known: level.')
    expect(() => wilsonInterval(1, 2, { level: 1 })).toThrow('lies in (0, 0.999999], got 1')
  })
})

describe('bootstrapInterval', () => {
  const values = Array.from({ length: 200 }, (_, index) => (index % 10 < 3 ? 1 : 0))

  it('is near the normal approximation for a mean, and the same for the same seed', () => {
    const interval = bootstrapInterval(values, { seed: seedOf('bootstrap') })
    const reach = 1.96 * Math.sqrt((0.3 * 0.7) / 200)
    expect(interval.low).toBeCloseTo(0.3 - reach, 1)
    expect(interval.high).toBeCloseTo(0.3 + reach, 1)
    expect(bootstrapInterval(values, { seed: seedOf('bootstrap') })).toEqual(interval)
    expect(bootstrapInterval(values, { seed: seedOf('other') })).not.toEqual(interval)
  })

  it('covers the truth about as often as it says', () => {
    const next = random(seedOf('coverage'))
    let covered = 0
    for (let round = 0; round < 200; round++) {
      const sample = Array.from({ length: 50 }, () => next())
      const { low, high } = bootstrapInterval(sample, { seed: seedOf(round), resamples: 200 })
      if (low <= 0.5 && high >= 0.5) covered++
    }
    expect(covered / 200).toBeGreaterThan(0.88)
    expect(covered / 200).toBeLessThan(0.99)
  })

  it('bounds any statistic', () => {
    const statistic = (drawn: Float64Array) => quantile(drawn, 0.5)
    const interval = bootstrapInterval([1, 2, 3, 4, 100], { seed: seedOf(1), statistic })
    expect(interval.high).toBeLessThanOrEqual(100)
    expect(interval.low).toBeGreaterThanOrEqual(1)
    expect(() => bootstrapInterval([1], { seed: seedOf(1), resamples: 0 })).toThrow('got 0')
  })
})
