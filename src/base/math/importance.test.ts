import { describe, expect, it } from 'vitest'
import { batchOf, cutRows, randomTokens, trained } from '../../../test/fixtures/math-batch.ts'
import { importanceWeights, stalenessWeights, type TwoEngines } from './importance.ts'

function engines(ratios: readonly number[], masks: readonly (readonly number[])[]): TwoEngines {
  const rolloutLogprobs = new Float64Array(ratios.length).fill(-1)
  return {
    ...batchOf(masks.map(mask => ({ mask }))),
    rolloutLogprobs,
    trainerLogprobs: rolloutLogprobs.map((value, token) => value + Math.log(ratios[token]!)),
  }
}

describe('importanceWeights', () => {
  // The worked example of the slime and verl specification.
  const tokens = engines([3, 1 / 4, 1], [[1, 1, 1]])
  const weights = (options: Parameters<typeof importanceWeights>[1]) =>
    Array.from(importanceWeights(tokens, options).weights, weight => Number(weight.toFixed(9)))

  it('truncates at 2, masks with IcePop, clips between its bounds', () => {
    expect(weights({})).toEqual([2, 0.25, 1])
    expect(weights({ mode: 'mask', high: 2 })).toEqual([0, 0.25, 1])
    expect(weights({ mode: 'mask', low: 0.5, high: 2 })).toEqual([0, 0, 1])
    expect(weights({ mode: 'clip', low: 0.5, high: 2 })).toEqual([2, 0.5, 1])
  })

  it('has one weight per trajectory at sequence and geometric level', () => {
    expect(weights({ level: 'sequence' })).toEqual([0.75, 0.75, 0.75])
    expect(weights({ level: 'geometric' })).toEqual(
      new Array(3).fill(Number(0.75 ** (1 / 3)).toFixed(9)).map(Number),
    )
  })

  it('a trajectory is one sequence however it was cut into rows', () => {
    for (let key = 0; key < 10; key++) {
      const whole = randomTokens(key)
      const cut = cutRows(whole, key)
      const name = (batch: typeof whole) => ({
        ...batch,
        rolloutLogprobs: batch.oldLogprobs,
        trainerLogprobs: batch.logprobs,
      })
      for (const level of ['token', 'sequence', 'geometric'] as const) {
        const before = trained(whole, importanceWeights(name(whole), { level }).weights)
        const after = trained(cut, importanceWeights(name(cut), { level }).weights)
        after.forEach((weight, index) => {
          expect(weight).toBeCloseTo(before[index]!, 11)
        })
      }
    }
  })

  it('a veto rejects the whole trajectory, and only it', () => {
    const two = engines(
      [1, 1e-5, 1, 1],
      [
        [1, 1],
        [1, 1],
      ],
    )
    const { weights: kept, vetoed } = importanceWeights(two, { veto: 1e-4 })
    expect(Array.from(kept)).toEqual([0, 0, 1, 1])
    expect(vetoed).toBe(1)
  })

  it('rejects as verl’s seq_mean_k1 does: nothing outside of the bounds, nothing changed inside', () => {
    const two = engines(
      [0.9995, 1.0001, 0.99, 1],
      [
        [1, 1],
        [1, 1],
      ],
    )
    const bounds = { level: 'geometric', mode: 'reject', low: 0.999, high: 1.001 } as const
    const { weights, bounded } = importanceWeights(two, bounds)
    expect(Array.from(weights)).toEqual([1, 1, 0, 0])
    expect(bounded).toBe(0.5)
  })

  it('averages to 1 when normalised, at every level', () => {
    for (const level of ['token', 'sequence', 'geometric'] as const) {
      const { weights: normal } = importanceWeights(tokens, { level, normalise: true })
      expect(normal.reduce((sum, weight) => sum + weight, 0) / 3).toBeCloseTo(1, 12)
    }
  })

  it('says how far the engines are apart', () => {
    const same = importanceWeights(engines([1, 1], [[1, 1]]))
    expect(same).toMatchObject({ effectiveSampleShare: 1, chiSquare: 0, bounded: 0 })
    const apart = importanceWeights(tokens)
    expect(apart.effectiveSampleShare).toBeCloseTo(4.25 ** 2 / (3 * (9 + 1 / 16 + 1)), 12)
    expect(apart.bounded).toBeCloseTo(1 / 3, 12)
  })

  it('holds absurd log-ratios and ignores context', () => {
    const absurd = engines([Number.NaN, 1], [[0, 1]])
    absurd.trainerLogprobs[1] = 900
    const { weights: held } = importanceWeights(absurd, { high: 1e12 })
    expect(Array.from(held)).toEqual([0, Math.exp(20)])
  })

  it('refuses options that would be ignored', () => {
    expect(() => importanceWeights(tokens, { low: 0.5 })).toThrow('bounds above only, got low 0.5')
    expect(() => importanceWeights(tokens, { mode: 'mask', low: 3 })).toThrow('got 3')
  })
})

describe('stalenessWeights', () => {
  it('decays with the lag and ends at its maximum', () => {
    const weights = stalenessWeights([7, 6, 5, 3], 7, { decay: 0.5, maximumLag: 2 })
    expect(Array.from(weights)).toEqual([1, 0.5, 0.25, 0])
    expect(Array.from(stalenessWeights([7, 0], 7))).toEqual([1, 1])
    expect(() => stalenessWeights([8], 7)).toThrow('Version 8 is newer than the current 7')
  })
})
