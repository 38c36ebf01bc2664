import { describe, expect, it } from 'vitest'
import { wilsonInterval } from '../intervals.ts'
import { clusteredChange, clusteredInterval, meanInterval, rewardInterval } from './clustered.ts'

const alike = (count: number, share: number, trials: number) =>
  Array.from({ length: count }, () => ({ share, trials }))

describe('bounds of success over tasks', () => {
  it('are Wilson’s for one task, and for tasks that are tried once', () => {
    expect(clusteredInterval([{ share: 0.375, trials: 64 }])).toEqual(wilsonInterval(24, 64))
    const tasks = [...alike(150, 1, 1), ...alike(50, 0, 1)]
    const { low, high } = clusteredInterval(tasks)
    const wilson = wilsonInterval(150, 200)
    expect(low).toBeCloseTo(wilson.low, 4)
    expect(high).toBeCloseTo(wilson.high, 4)
  })

  it('have a width where tasks went alike, and at 0 and 1', () => {
    const { low, high } = clusteredInterval(alike(6, 0.5, 2))
    expect(high - low).toBeGreaterThan(0.4)
    expect(clusteredInterval(alike(6, 0, 8)).low).toBe(0)
    expect(clusteredInterval(alike(6, 0, 8)).high).toBeGreaterThan(0.1)
    expect(clusteredInterval([])).toEqual({ low: 0, high: 1 })
  })

  it('count four attempts at a task for less than four tasks', () => {
    const bimodal = [...alike(18, 0.95, 4), ...alike(18, 0.15, 4)]
    const { low, high } = clusteredInterval(bimodal)
    const { low: l, high: h } = wilsonInterval(79, 144)
    expect(high - low).toBeGreaterThan(1.5 * (h - l))
  })

  it('grow narrow with tasks, not with attempts', () => {
    const width = (tasks: number, trials: number): number => {
      const half = tasks / 2
      const { low, high } = clusteredInterval([
        ...alike(half, 0.75, trials),
        ...alike(half, 0.25, trials),
      ])
      return high - low
    }
    expect(width(64, 8)).toBeLessThan(0.6 * width(16, 8))
    expect(width(16, 64)).toBeGreaterThan(0.8 * width(16, 8))
  })
})

describe('bounds of a change', () => {
  const sides = (before: number, after: number, trials = 1) =>
    [
      { share: before, trials },
      { share: after, trials },
    ] as const

  it('two tasks that both changed are no certainty', () => {
    const { low, high } = clusteredChange([sides(0, 1), sides(0, 1)])
    expect(low).toBeLessThan(0.3)
    expect(high).toBe(1)
  })

  it('pairing takes out what tasks differ by', () => {
    const pairs = [0.1, 0.3, 0.5, 0.7, 0.9].map(rate => sides(rate, rate + 0.05, 64))
    const { low, high } = clusteredChange(pairs)
    expect(high - low).toBeLessThan(0.3)
    expect(clusteredChange([sides(0.2, 0.8, 64)]).low).toBeGreaterThan(0.3)
  })
})

describe('bounds of a mean reward', () => {
  it('are those of success where rewards are 0 and 1, and Student’s elsewhere', () => {
    const tasks = [
      [0, 1, 1],
      [0, 0, 1],
    ]
    expect(rewardInterval(tasks)).toEqual(
      clusteredInterval([
        { share: 2 / 3, trials: 3 },
        { share: 1 / 3, trials: 3 },
      ]),
    )
    expect(rewardInterval([[1], [2], [3]])).toEqual(meanInterval([1, 2, 3]))
    expect(rewardInterval([[1, 2, 3]])).toEqual(meanInterval([1, 2, 3]))
    expect(meanInterval([1, 2, 3]).low).toBeCloseTo(2 - 4.303 / Math.sqrt(3), 3)
  })

  it('say that nothing is known of others than one number, unless it is bounded', () => {
    expect(rewardInterval([[7]])).toEqual({ low: -Infinity, high: Infinity })
    expect(rewardInterval([[0.5], [0.5]]).low).toBeGreaterThan(0)
    expect(rewardInterval([]).low).toBeNaN()
  })
})
