import { describe, expect, it } from 'vitest'
import { importanceWeights } from '../../base/math/importance.ts'
import { mismatch } from '../../base/math/mismatch.ts'
import { checkImportance, readImportance } from '../../engine/weigh/importance.ts'
import { mismatchMetrics } from './embedded-off-policy.ts'
import { importanceOf, twoEnginesLine } from './off-policy.ts'

/** Two trajectories over five tokens, the first of which they share. */
const paths = {
  offsets: Int32Array.of(0, 3, 6),
  trajectory: Int32Array.of(0, 1),
  mask: new Uint8Array(6).fill(1),
  tokens: Int32Array.of(0, 1, 2, 0, 3, 4),
  advantages: new Float64Array(6).fill(1),
}
const recorded = Float64Array.of(-1, -2, -1, -3, -1)
const proximal = Float64Array.of(-1.1, -0.5, -1, -9, -1)
const tokens = { recorded, proximal, versions: Float64Array.of(3, 3, 5, 4, 5), current: 5 }

describe('importance weights by name', () => {
  it.each([
    ['token:high=3', { level: 'token', mode: 'truncate', high: 3 }],
    ['sequence', { level: 'sequence', mode: 'truncate', high: 2 }],
    ['mask', { level: 'token', mode: 'mask', low: 0.5, high: 2 }],
    ['icepop', { level: 'token', mode: 'mask', low: 0.5, high: 5 }],
    [
      'reject:low=0.5,high=2,veto=0.001',
      { level: 'geometric', mode: 'reject', low: 0.5, high: 2, veto: 0.001 },
    ],
  ] as const)('%s', (name, settings) => {
    const at = (values: Float64Array) => Float64Array.from(paths.tokens, token => values[token]!)
    const engines = { ...paths, rolloutLogprobs: at(recorded), trainerLogprobs: at(proximal) }
    const { weights } = importanceOf(paths, readImportance([name]), tokens)
    expect(weights).toEqual(importanceWeights(engines, settings).weights)
    expect(new Set(weights).size).toBeGreaterThan(1)
  })

  it('reject weighs nothing beside token, and its own bounds are ones that engines leave', () => {
    const near = { ...tokens, proximal: recorded.map(value => value - 0.0005) }
    const both = importanceOf(paths, readImportance(['token', 'reject']), near).weights
    expect(both).toEqual(importanceOf(paths, readImportance(['token']), near).weights)
    const apart = { ...tokens, proximal: recorded.map(value => value - 0.002) }
    expect([...importanceOf(paths, readImportance(['reject']), apart).weights]).toEqual(
      new Array(6).fill(0),
    )
  })

  it('several multiply, and age counts in versions', () => {
    const age = importanceOf(paths, readImportance(['staleness:decay=0.5,lag=1']), tokens).weights
    expect([...age]).toEqual([0, 0, 1, 0, 0.5, 1])
    const token = importanceOf(paths, readImportance(['token']), tokens).weights
    const both = importanceOf(paths, readImportance(['token', 'staleness:decay=0.5']), tokens)
    expect(both.weights[4]).toBeCloseTo(token[4]! * 0.5, 12)
  })

  it('ratios need their own start, and wrong names are answered with the known ones', () => {
    expect(() => checkImportance(['token'], 'recorded')).toThrow('--proximal recompute')
    expect(() => checkImportance(['staleness'], 'recorded')).not.toThrow()
    expect(() => checkImportance(['tokens'], 'recompute')).toThrow('token, sequence')
  })
})

describe('mismatch', () => {
  const engines = (trainer: Float64Array) =>
    mismatch({
      offsets: Int32Array.of(0, 5),
      trajectory: Int32Array.of(0),
      mask: new Uint8Array(5).fill(1),
      rolloutLogprobs: recorded,
      trainerLogprobs: trainer,
    })

  it('is nothing where both engines agree', () => {
    const same = { kl: 0, ratio: { low: 1, median: 1, high: 1 }, effectiveSampleShare: 1 }
    expect(engines(recorded)).toEqual({ tokens: 5, ...same })
  })

  it('has a divergence, the quantiles of its ratios, and what is left of the samples', () => {
    const found = engines(proximal)
    const ratios = proximal.map((value, token) => Math.exp(value - recorded[token]!))
    const kl = ratios.reduce((sum, ratio) => sum + ratio - 1 - Math.log(ratio), 0) / 5
    expect(found.kl).toBeCloseTo(kl, 12)
    expect(found.ratio.median).toBe(1)
    expect(found.effectiveSampleShare).toBeLessThan(0.6)
  })
})

it('says in which turn trainer and sampler are apart: tokens of a turn are those it sampled', () => {
  const row = (changes: readonly (readonly [number, number])[]) => {
    const origins = [
      { start: 0, end: 2, value: 'prompt' },
      { start: 2, end: 4, value: 'sampled' },
      { start: 4, end: 5, value: 'observed' },
      { start: 5, end: 8, value: 'sampled' },
    ] as const
    const mask = Uint8Array.from({ length: 8 }, (_, token) => Number(token > 1 && token !== 4))
    const logprobs = new Float32Array(8).fill(-1)
    const now = new Float64Array(8).fill(-1)
    for (const [token, by] of changes) now[token]! += by
    return {
      row: { ids: new Int32Array(8), mask, logprobs, temperature: 1, tree: 0, origins },
      now,
    }
  }
  const rows = [row([[6, 0.5]]), row([])]
  const logprobs = Float64Array.from(rows.flatMap(({ now }) => [...now]))
  const metrics = mismatchMetrics({ rows: rows.map(each => each.row), logprobs })
  expect(metrics['mismatchKl/turn-1']).toBe(0)
  expect(metrics['mismatchKl/turn-2']).toBeCloseTo((Math.expm1(0.5) - 0.5) / 6)
  expect(metrics.mismatchKl).toBeCloseTo((Math.expm1(0.5) - 0.5) / 10)
})

it('a run whose samples another engine draws says what of it is in every ratio, unless it is weighed', () => {
  const server = { name: 'vllm:http://localhost:8000', weights: { update: async () => {} } }
  expect(twoEnginesLine(server, {})).toMatch(/^vllm:.*two engines.*--proximal recompute/)
  expect(twoEnginesLine(server, { importance: ['token'] })).toBeUndefined()
  expect(twoEnginesLine({ name: 'embedded' }, {})).toBeUndefined()
})
