import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { childSeed, pick, random, randomAt, seedOf, shuffle } from './random.ts'

describe('seedOf', () => {
  it('agrees with the published HalfSipHash-2-4 answer for the empty message', () => {
    // Reference vector, 64-bit output, key bytes 00..07: 21 8d 1f 59 b9 b8 3c c8.
    const seed = childSeed({ low: 0x03020100, high: 0x07060504 })
    expect(seed).toEqual({ low: 0x591f8d21, high: 0xc83cb8b9 })
  })

  it('is pinned: the same parts give the same seed in every release', () => {
    expect(seedOf()).toEqual({ high: 4_151_911_668, low: 2_001_598_485 })
    expect(seedOf('run', 7, 'task')).toEqual({ high: 683_754_805, low: 1_855_723_204 })
    expect(childSeed(seedOf('run', 7), 'task')).not.toEqual(seedOf('run', 7, 'task'))
  })

  it('keeps kinds and borders of its parts', () => {
    const keys = [
      seedOf('a', 'b'),
      seedOf('ab'),
      seedOf('ab', ''),
      seedOf('', 'ab'),
      seedOf(1),
      seedOf('1'),
      seedOf(1, 0),
      seedOf(),
      seedOf(0),
      seedOf('\0'),
      seedOf('\0\0'),
      seedOf(1.5),
      seedOf(-1),
    ].map(({ high, low }) => `${high}/${low}`)
    expect(new Set(keys).size).toBe(keys.length)
  })

  it('treats the two zeros as one number and refuses NaN', () => {
    expect(seedOf(-0)).toEqual(seedOf(0))
    expect(() => seedOf(Number.NaN)).toThrow('NaN cannot be part of a seed')
  })

  it('changes half of its bits when one bit of a part changes', () => {
    let flipped = 0
    const base = seedOf('task', 0)
    for (let bit = 0; bit < 32; bit++) {
      const other = seedOf('task', 2 ** bit)
      flipped += bits(base.high ^ other.high) + bits(base.low ^ other.low)
    }
    expect(flipped / 32).toBeGreaterThan(28)
    expect(flipped / 32).toBeLessThan(36)
  })
})

describe('random', () => {
  it('is pinned', () => {
    const next = random(seedOf('pinned'))
    expect([next(), next(), next()]).toEqual([
      0.8744949247851349, 0.32858865007667015, 0.1041939905865753,
    ])
  })

  it('is uniform enough: sixteen bins, chi square below the 0.999 quantile', () => {
    const next = random(seedOf('uniform'))
    expect(chiSquare(() => next())).toBeLessThan(37.7)
  })

  it('gives unrelated streams to neighbouring seeds', () => {
    const first = random({ high: 0, low: 0 })
    const second = random({ high: 0, low: 1 })
    let product = 0
    for (let draw = 0; draw < 10_000; draw++) product += (first() - 0.5) * (second() - 0.5)
    // The standard error of this correlation is 0.01.
    expect(Math.abs((product / 10_000) * 12)).toBeLessThan(0.04)
  })
})

describe('randomAt', () => {
  it('depends on the place alone, not on the order of asking', () => {
    const seed = seedOf('token')
    const forwards = [0, 1, 2, 3].map(index => randomAt(seed, index))
    const backwards = [3, 2, 1, 0].map(index => randomAt(seed, index)).reverse()
    expect(forwards).toEqual(backwards)
    expect(forwards[0]).toBe(0.8746172321150815)
  })

  it('is uniform enough over places, and serves places beyond 32 bits', () => {
    let index = 2 ** 32 - 5000
    expect(chiSquare(() => randomAt(seedOf('places'), index++))).toBeLessThan(37.7)
    expect(randomAt(seedOf(1), 2 ** 32)).not.toBe(randomAt(seedOf(1), 0))
  })

  it('refuses what is not a place', () => {
    expect(() => randomAt(seedOf(1), 0.5)).toThrow('safe integer, got 0.5')
  })
})

describe('shuffle and pick', () => {
  it('shuffle keeps every item and leaves its input alone', () => {
    fc.assert(
      fc.property(fc.array(fc.integer()), fc.integer(), (items, key) => {
        const before = [...items]
        const after = shuffle(items, random(seedOf(key)))
        expect(items).toEqual(before)
        expect([...after].sort((a, b) => a - b)).toEqual([...items].sort((a, b) => a - b))
      }),
      { seed: 4, numRuns: 50 },
    )
  })

  it('shuffle reaches all six orders of three items about equally often', () => {
    const counts = new Map<string, number>()
    const next = random(seedOf('orders'))
    for (let round = 0; round < 6000; round++) {
      const order = shuffle([1, 2, 3], next).join('')
      counts.set(order, (counts.get(order) ?? 0) + 1)
    }
    expect(counts.size).toBe(6)
    for (const count of counts.values()) expect(Math.abs(count - 1000)).toBeLessThan(120)
  })

  it('pick takes from the list and refuses an empty one', () => {
    const next = random(seedOf('pick'))
    const seen = new Set(Array.from({ length: 100 }, () => pick(['a', 'b', 'c'], next)))
    expect([...seen].sort()).toEqual(['a', 'b', 'c'])
    expect(() => pick([], next)).toThrow('the list is empty')
  })
})

function bits(word: number): number {
  return (word >>> 0).toString(2).replaceAll('0', '').length
}

/** Chi square of 16,000 draws over sixteen bins (15 degrees of freedom). */
function chiSquare(draw: () => number): number {
  const counts = new Array<number>(16).fill(0)
  for (let round = 0; round < 16_000; round++) counts[Math.floor(draw() * 16)]! += 1
  return counts.reduce((total, count) => total + (count - 1000) ** 2 / 1000, 0)
}
