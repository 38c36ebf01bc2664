import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { deviation, mean, quantile, weightedDeviation, weightedMean } from './statistics.ts'

describe('mean and deviation', () => {
  it('agree with a calculation by hand', () => {
    expect(mean([1, 0, 0, 1])).toBe(0.5)
    expect(deviation([1, 0, 0, 1])).toBeCloseTo(0.5773503, 7)
    expect(deviation([1, 0, 0, 1], 'population')).toBe(0.5)
  })

  it('leave no rounding noise on equal values', () => {
    // 0.1 + 0.1 + 0.1 is not 0.3: a naive mean of three would have a spread above 0.
    fc.assert(
      fc.property(
        fc.double({ noNaN: true, noDefaultInfinity: true }),
        fc.integer({ min: 1, max: 20 }),
        (value, count) => {
          const values = new Array<number>(count).fill(value + 0)
          expect(mean(values)).toBe(value + 0)
          expect(deviation(values)).toBe(0)
        },
      ),
      { seed: 1, numRuns: 200 },
    )
  })

  it('say NaN of nothing and 0 spread of one', () => {
    expect(mean([])).toBeNaN()
    expect(deviation([])).toBeNaN()
    expect(deviation([7])).toBe(0)
    expect(weightedMean([1, 2], [0, 0])).toBeNaN()
  })

  it('a mask is a weighting, and so is repetition', () => {
    expect(weightedMean([1, 9, 3], [1, 0, 1])).toBe(2)
    expect(weightedDeviation([1, 9, 3], { weights: [1, 0, 1] })).toBeCloseTo(Math.SQRT2, 12)
    const repeated = weightedDeviation([1, 2, 2, 5], { kind: 'population' })
    expect(weightedDeviation([1, 2, 5], { weights: [1, 2, 1], kind: 'population' })).toBeCloseTo(
      repeated,
      12,
    )
  })

  it('the size of equal weights does not matter', () => {
    const plain = deviation([1, 4, 6])
    expect(weightedDeviation([1, 4, 6], { weights: [0.25, 0.25, 0.25] })).toBeCloseTo(plain, 12)
  })

  it('ignore what has no weight, even NaN, and refuse a wrong number of weights', () => {
    expect(weightedMean([Number.NaN, 2], [0, 1])).toBe(2)
    expect(() => weightedMean([1, 2], [1])).toThrow('2 values have 1 weights')
  })
})

describe('quantile', () => {
  it('interpolates as numpy does', () => {
    expect(quantile([4, 1, 3, 2], 0)).toBe(1)
    expect(quantile([4, 1, 3, 2], 0.5)).toBe(2.5)
    expect(quantile([4, 1, 3, 2], 0.9)).toBeCloseTo(3.7, 12)
    expect(quantile([4, 1, 3, 2], 1)).toBe(4)
    expect(quantile([], 0.5)).toBeNaN()
    expect(() => quantile([1], 1.2)).toThrow('lies in [0, 1], got 1.2')
  })
})
