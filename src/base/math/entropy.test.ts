import { describe, expect, it } from 'vitest'
import { branchProbability, entropyOfLogits, nextEntropyCoefficient } from './entropy.ts'

describe('entropyOfLogits', () => {
  it('agrees with the worked example, at any shift', () => {
    expect(entropyOfLogits([2, 1, 0])).toBeCloseTo(0.832396, 6)
    expect(entropyOfLogits([1002, 1001, 1000])).toBeCloseTo(0.832396, 6)
    expect(entropyOfLogits([0, 0, 0, 0])).toBeCloseTo(Math.log(4), 12)
    expect(entropyOfLogits([5, Number.NEGATIVE_INFINITY])).toBe(0)
  })
})

describe('nextEntropyCoefficient', () => {
  const target = { target: 0.5, step: 0.005, maximum: 0.02 }

  it('rises while the entropy is too low, up to its maximum', () => {
    let kept = 0
    for (let step = 0; step < 10; step++) kept = nextEntropyCoefficient(kept, 0.1, target).kept
    expect(kept).toBeCloseTo(0.02, 12)
  })

  it('falls, and is not used, while the entropy is high enough', () => {
    expect(nextEntropyCoefficient(0.01, 0.9, target)).toEqual({ kept: 0.005, used: 0 })
    expect(nextEntropyCoefficient(0.002, 0.9, target).kept).toBe(0)
    expect(nextEntropyCoefficient(0.01, 0.5, target)).toEqual({ kept: 0.01, used: 0.01 })
  })

  it('holds a simulated entropy near its target', () => {
    // Entropy decays by itself and is held up by the bonus.
    let entropy = 1.5
    let kept = 0
    for (let step = 0; step < 2000; step++) {
      const coefficient = nextEntropyCoefficient(kept, entropy, { ...target, maximum: 1 })
      kept = coefficient.kept
      entropy = Math.max(0, entropy - 0.01 * entropy + 0.02 * coefficient.used)
    }
    expect(entropy).toBeGreaterThan(0.4)
    expect(entropy).toBeLessThan(0.6)
  })

  it('refuses an entropy that is none', () => {
    expect(() => nextEntropyCoefficient(0, Number.NaN, target)).toThrow('got NaN')
  })
})

describe('branchProbability', () => {
  it('agrees with the worked example of ARPO', () => {
    const chances = [-0.5, 0, 0.5, 3].map(rise =>
      branchProbability(rise, { base: 0.5, weight: 0.2 }),
    )
    expect(chances).toEqual([0.4, 0.5, 0.6, 1].map(chance => expect.closeTo(chance, 12)))
    expect(branchProbability(-5, { base: 0.5, weight: 0.2 })).toBe(0)
  })
})
