import { describe, expect, it } from 'vitest'
import { grpoAdvantages } from './advantages/grpo.ts'
import { type Credit, creditOf, leafWeight, leafWeightNames } from './credit.ts'

describe('leafWeight', () => {
  it('branch gives every leaf its share of the tree: the shares sum to 1', () => {
    // A root with three continuations, one of which forks in two.
    const paths = [[3], [3], [3, 2], [3, 2]]
    const weights = paths.map(widths => leafWeight('branch', widths))
    expect(weights).toEqual([1 / 3, 1 / 3, 1 / 6, 1 / 6])
    expect(paths.map(widths => leafWeight('uniform', widths))).toEqual([1, 1, 1, 1])
  })

  it('refuses a fork without continuations and an unknown name', () => {
    expect(() => leafWeight('branch', [0])).toThrow('got 0')
    expect(() => leafWeight('soft' as 'hard', [])).toThrow('Known: uniform, branch, hard')
  })
})

describe('creditOf', () => {
  it('ARPO, hard: a prefix shared by a success and a failure has advantage 0', () => {
    const rewards = [1, 0, 0, 1].map((reward, trajectory) => ({ group: 'g', trajectory, reward }))
    const leaves = grpoAdvantages(rewards).map(advantage => ({ advantage: advantage!, weight: 1 }))
    const prefix = creditOf('hard', leaves.slice(0, 2))!
    expect(prefix).toEqual({ advantage: expect.closeTo(0, 12), weight: 1 })
    expect(creditOf('hard', [leaves[0]!])!.advantage).toBeCloseTo(0.866024, 6)
  })

  it('weight times advantage is what training every path separately would sum to', () => {
    const through: Credit[] = [
      { advantage: 1, weight: 0.5 },
      { advantage: -2, weight: 0.25 },
      { advantage: 0.5, weight: 0.25 },
    ]
    for (const weighting of ['uniform', 'branch'] as const) {
      const { advantage, weight } = creditOf(weighting, through)!
      expect(weight).toBe(1)
      expect(advantage * weight).toBeCloseTo(0.5 - 0.5 + 0.125, 12)
    }
  })

  it('a token through which no trajectory is left is not trained', () => {
    for (const weighting of leafWeightNames) expect(creditOf(weighting, [])).toBeUndefined()
  })
})
