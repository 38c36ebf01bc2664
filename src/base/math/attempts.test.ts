import { describe, expect, it } from 'vitest'
import { attemptMeans } from './attempts.ts'
import { passAtK, passAtKOf, passHatK, passHatKOf } from './pass-at-k.ts'

describe('attempts', () => {
  it('count a tree once, with the mean of its endings by their shares', () => {
    const endings = [
      { tree: 'a', share: 0.5, value: 1 },
      { tree: 'b', share: 1, value: 0 },
      { tree: 'a', share: 0.25, value: 0 },
      { tree: 'a', share: 0.25, value: 1 },
    ]
    expect(attemptMeans(endings)).toEqual([0.75, 0])
  })

  it('an ending that failed leaves its share to the others of its tree', () => {
    expect(attemptMeans([{ tree: 0, share: 0.5, value: 1 }])).toEqual([1])
  })

  it('pass@k and pass^k of chances are those of counts where every chance is 0 or 1', () => {
    const chances = [1, 0, 1, 1, 0, 0]
    for (let k = 1; k <= 6; k++) {
      expect(passAtKOf(chances, k)).toBeCloseTo(passAtK(3, 6, k), 12)
      expect(passHatKOf(chances, k)).toBeCloseTo(passHatK(3, 6, k), 12)
    }
  })

  it('are means over all choices of k attempts', () => {
    const [a, b, c] = [0.5, 0.2, 0.9]
    expect(passHatKOf([a, b, c], 2)).toBeCloseTo((a * b + a * c + b * c) / 3, 12)
    const misses = ((1 - a) * (1 - b) + (1 - a) * (1 - c) + (1 - b) * (1 - c)) / 3
    expect(passAtKOf([a, b, c], 2)).toBeCloseTo(1 - misses, 12)
    expect(() => passAtKOf([a], 2)).toThrow('between 1 and the 1 trials')
  })
})
