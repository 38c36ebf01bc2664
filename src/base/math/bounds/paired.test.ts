import { describe, expect, it } from 'vitest'
import { random, seedOf } from '../random.ts'
import { detectableDifference, holm, pairedDifference } from './paired.ts'
import { studentBelow, studentQuantile } from './student.ts'

describe('Student’s distribution', () => {
  it.each([
    // From tables: the 97.5 % point by degrees of freedom.
    [1, 12.7062047],
    [2, 4.3026527],
    [4, 2.7764451],
    [9, 2.2621572],
    [30, 2.0422725],
    [1000, 1.9623391],
  ])('with %d degrees has its 97.5 %% point at %d', (freedom, t) => {
    expect(studentQuantile(0.975, freedom)).toBeCloseTo(t, 6)
    expect(studentBelow(t, freedom)).toBeCloseTo(0.975, 8)
    expect(studentBelow(-t, freedom)).toBeCloseTo(0.025, 8)
  })
})

describe('paired differences', () => {
  it('have the bounds of a t-test', () => {
    // mean 0.03, deviation 0.02, five pairs: 0.03 ± 2.776 × 0.02 / √5 is worked out by hand.
    const differences = [0.01, 0.02, 0.03, 0.04, 0.05]
    const { value, low, high, better, p } = pairedDifference(differences)
    expect(value).toBeCloseTo(0.03, 12)
    expect(high - value).toBeCloseTo((2.7764451 * Math.sqrt(0.00025)) / Math.sqrt(5), 8)
    expect(value - low).toBeCloseTo(high - value, 12)
    expect(p).toBeCloseTo(2 * (1 - better), 12)
  })

  it('of one pair, or of equal pairs, claim no more than they know', () => {
    expect(pairedDifference([0.1])).toMatchObject({
      low: Number.NEGATIVE_INFINITY,
      p: 1,
      better: 0.5,
    })
    expect(pairedDifference([0, 0, 0])).toMatchObject({ low: 0, high: 0, p: 1 })
  })

  it('that were looked at after every pair still hold the truth in at least 95 of 100 runs', () => {
    const runs = process.env.ESPALIER_SOAK ? 4000 : 400
    const misses = { once: 0, always: 0 }
    for (let run = 0; run < runs; run++) {
      const draw = random(seedOf('looks', run))
      const seen: number[] = []
      const out = { once: false, always: false }
      for (let pair = 0; pair < 40; pair++) {
        seen.push(Math.sqrt(-2 * Math.log(1 - draw())) * Math.cos(2 * Math.PI * draw()))
        if (seen.length < 3) continue
        const sequential = pairedDifference(seen, { isSequential: true })
        const single = pairedDifference(seen)
        if (sequential.low > 0 || sequential.high < 0) out.always = true
        if (single.low > 0 || single.high < 0) out.once = true
        expect(sequential.p < 0.05).toBe(sequential.low > 0 || sequential.high < 0)
      }
      misses.once += Number(out.once)
      misses.always += Number(out.always)
    }
    expect(misses.always / runs).toBeLessThan(0.05)
    // The same looks with bounds for a single look are wrong far more often.
    expect(misses.once / runs).toBeGreaterThan(0.15)
  })
})

it('Holm’s correction grows with the number of comparisons and never falls below a smaller one', () => {
  expect(holm([0.01, 0.04, 0.03])).toEqual([0.03, 0.06, 0.06])
  expect(holm([0.5, 0.6])).toEqual([1, 1])
  expect(holm([])).toEqual([])
})

it('differences that are all alike have no bounds, and are as unlikely as their signs', () => {
  const { low, high, p, better } = pairedDifference([-0.1, -0.1, -0.1])
  expect([low, high, p]).toEqual([Number.NEGATIVE_INFINITY, Number.POSITIVE_INFINITY, 0.25])
  expect(better).toBe(0.125)
})

it('a design could have seen what its spread and its pairs allow', () => {
  const few = detectableDifference(0.02, 5)
  expect(few).toBeGreaterThan(detectableDifference(0.02, 20))
  expect(few).toBeCloseTo((0.02 / Math.sqrt(5)) * (2.7764451 + 0.9409646), 6)
  expect(detectableDifference(0.02, 1)).toBe(Number.POSITIVE_INFINITY)
})
