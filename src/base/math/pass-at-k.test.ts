import { describe, expect, it } from 'vitest'
import { passAtK, passHatK } from './pass-at-k.ts'

/** All ways to choose k of n attempts, of which the first `successes` succeeded. */
function byEnumeration(successes: number, trials: number, k: number) {
  let sets = 0
  let some = 0
  let all = 0
  for (let set = 0; set < 2 ** trials; set++) {
    const chosen = Array.from({ length: trials }, (_, index) => index).filter(i => set & (1 << i))
    if (chosen.length !== k) continue
    sets++
    if (chosen.some(index => index < successes)) some++
    if (chosen.every(index => index < successes)) all++
  }
  return { some: some / sets, all: all / sets }
}

describe('pass@k and pass^k', () => {
  it('equal the share of all k-subsets with some, and with only, successes', () => {
    for (let trials = 1; trials <= 7; trials++) {
      for (let successes = 0; successes <= trials; successes++) {
        for (let k = 1; k <= trials; k++) {
          const { some, all } = byEnumeration(successes, trials, k)
          expect(passAtK(successes, trials, k)).toBeCloseTo(some, 12)
          expect(passHatK(successes, trials, k)).toBeCloseTo(all, 12)
        }
      }
    }
  })

  it('stay finite for many trials', () => {
    expect(passAtK(1, 100_000, 50_000)).toBeCloseTo(0.5, 9)
    expect(passHatK(99_999, 100_000, 50_000)).toBeCloseTo(0.5, 9)
  })

  it('refuse what cannot be counted', () => {
    expect(() => passAtK(5, 4, 1)).toThrow('5 successes in 4 trials')
    expect(() => passHatK(1, 4, 5)).toThrow('between 1 and the 4 trials, got 5')
  })
})
