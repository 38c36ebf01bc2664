import { describe, expect, it } from 'vitest'
import { batchOf, randomTokens } from '../../../test/fixtures/math-batch.ts'
import { type Aggregation, tokenShares } from './aggregation.ts'
import { checkBatch, normalisers, selectRows, whiten } from './batch.ts'
import { aggregationNamed } from './registry.ts'

const rows = batchOf([
  { trajectory: 0, mask: [0, 1, 1] },
  { trajectory: 2, mask: [1] },
  { trajectory: 0, mask: [1, 0] },
  { trajectory: 1, mask: [0] },
])

describe('normalisers', () => {
  it('count tokens, and trajectories once however many rows they have', () => {
    expect(normalisers(rows)).toEqual({
      tokens: 4,
      weight: 4,
      trained: 2,
      trajectories: 3,
      tokensOf: Int32Array.of(3, 0, 1),
      weightOf: Float64Array.of(3, 0, 1),
    })
  })

  it('know of trajectories that left no row when told', () => {
    expect(normalisers(rows, { trajectories: 5 }).trajectories).toBe(5)
    expect(() => normalisers(rows, { trajectories: 2 })).toThrow(
      '3 trajectories have rows, but only 2 were announced',
    )
  })

  it('sum weights where there are some', () => {
    const weights = Float64Array.of(9, 0.5, 0.5, 2, 1, 9, 9)
    const { tokens, weight, weightOf } = normalisers({ ...rows, weights })
    expect([tokens, weight, ...weightOf]).toEqual([4, 4, 2, 0, 2])
  })
})

describe('tokenShares', () => {
  // The worked example of the slime and verl specification: losses 1, 1, 1 and 4.
  const batch = batchOf([{ mask: [1, 1, 1, 0] }, { mask: [1, 0, 0, 0] }])
  const losses = [1, 1, 1, Number.NaN, 4, Number.NaN, Number.NaN, Number.NaN]
  const aggregate = (name: string) =>
    tokenShares(batch, aggregationNamed(name), normalisers(batch)).reduce(
      (total, share, token) => (share === 0 ? total : total + share * losses[token]!),
      0,
    )

  it.each([
    ['token-mean', 7 / 4],
    ['sequence-mean-token-sum', 3.5],
    ['sequence-mean-token-mean', 2.5],
    ['constant:4', 1.75],
    ['trajectory-mean', 2.5],
    ['sequence-mean-token-sum:4', 3.5 / 4],
  ])('%s is %d', (name, expected) => {
    expect(aggregate(name)).toBeCloseTo(expected, 12)
  })

  it('trajectory-mean counts those that train nothing; the sequence means do not', () => {
    const share = (name: string) => tokenShares(rows, aggregationNamed(name), normalisers(rows))
    expect(share('trajectory-mean')[3]).toBeCloseTo(1 / 3, 12)
    expect(share('sequence-mean-token-mean')[3]).toBeCloseTo(1 / 2, 12)
  })

  it('refuses a kind it does not know and a field that its kind does not have', () => {
    const shares = (aggregation: object) => () =>
      tokenShares(rows, aggregation as Aggregation, normalisers(rows))
    expect(shares({ kind: 'mean' })).toThrow('No aggregation called "mean". Known: token-mean, ')
    expect(shares({ kind: 'token-mean', length: 9 })).toThrow(
      'The aggregation token-mean has no option "length". Known: kind.',
    )
    expect(shares({ kind: 'constant' })).toThrow('divisor must be a finite number')
  })

  it('a token without weight has no share, even where nothing has', () => {
    const weights = new Float64Array(rows.mask.length)
    const whole = normalisers({ ...rows, weights })
    expect(tokenShares({ ...rows, weights }, { kind: 'token-mean' }, whole)).toEqual(weights)
  })
})

describe('aggregationNamed', () => {
  it('refuses what it does not know, and numbers in the wrong place', () => {
    expect(() => aggregationNamed('mean')).toThrow('cannot be "mean". Known: token-mean, ')
    expect(() => aggregationNamed('constant')).toThrow('needs its divisor')
    expect(() => aggregationNamed('token-mean:3')).toThrow('takes no number, got "token-mean:3"')
    expect(() => aggregationNamed('constant:0')).toThrow('got 0')
    expect(() => aggregationNamed('constant:4:5')).toThrow('constant')
  })
})

describe('selectRows', () => {
  it('cuts every per-token array and keeps the indices of trajectories', () => {
    const chosen = selectRows({ ...rows, logprobs: Float32Array.of(1, 2, 3, 4, 5, 6, 7) }, [2, 1])
    expect(chosen.offsets).toEqual(Int32Array.of(0, 2, 3))
    expect(chosen.trajectory).toEqual(Int32Array.of(0, 2))
    expect(chosen.logprobs).toEqual(Float32Array.of(5, 6, 4))
    expect(chosen.mask).toEqual(Uint8Array.of(1, 0, 1))
    expect(() => selectRows(rows, [4])).toThrow('There is no row 4: the batch has 4')
  })
})

describe('whiten', () => {
  it('gives mean 0 and spread 1 to the trained tokens', () => {
    const tokens = randomTokens(1)
    const { weights: _, ...batch } = tokens
    const white = whiten(batch, tokens.logprobs, { epsilon: 0 })
    const values = Array.from(white).filter((__, token) => tokens.mask[token] !== 0)
    const mean = values.reduce((sum, value) => sum + value, 0) / values.length
    const squares = values.reduce((sum, value) => sum + value * value, 0)
    expect(mean).toBeCloseTo(0, 12)
    expect(squares / (values.length - 1)).toBeCloseTo(1, 12)
  })

  it('adds its epsilon to the variance, under the root', () => {
    const pair = batchOf([{ mask: [1, 1] }])
    const white = whiten(pair, Float64Array.of(1, 3), { epsilon: 7 })
    expect(Array.from(white)).toEqual([-1 / 3, 1 / 3])
  })

  it('makes equal values exactly 0', () => {
    const values = new Float64Array(rows.mask.length).fill(0.1)
    expect(whiten(rows, values)).toEqual(new Float64Array(rows.mask.length))
  })
})

describe('checkBatch', () => {
  it.each([
    [{ offsets: Int32Array.of(0, 3) }, '4 rows need 5 offsets, got 2'],
    [{ offsets: Int32Array.of(0, 3, 2, 6, 7) }, 'Row 1 begins at 3 and ends before, at 2'],
    [{ offsets: Int32Array.of(0, 3, 4, 6, 8) }, 'Offsets run from 0 to 8, tokens from 0 to 7'],
    [{ trajectory: Int32Array.of(0, 2, -1, 1) }, 'Row 2 names trajectory -1; the first is 0'],
    [{ weights: Float64Array.of(1) }, 'The batch has 7 tokens, but weights has 1'],
    [{ weights: new Float64Array(7).fill(-1) }, 'Token 1 has the negative weight -1'],
  ])('refuses %o', (change, message) => {
    expect(() => checkBatch({ ...rows, ...change })).toThrow(message)
  })
})
