import fc from 'fast-check'
import { snappyUncompress } from 'hyparquet'
import { describe, expect, it } from 'vitest'
import { random, seedOf } from '../../../base/math/random.ts'
import { GrowingBytes } from './growing-bytes.ts'
import { compressBytes, compressRuns } from './snappy.ts'

function expectBack(input: Uint8Array, compress: (output: GrowingBytes) => void): number {
  const output = new GrowingBytes(1)
  compress(output)
  const back = new Uint8Array(input.length)
  snappyUncompress(output.view(), back)
  expect(Buffer.compare(back, input)).toBe(0)
  return output.length
}

const compressed = (input: Uint8Array): number =>
  expectBack(input, output => compressBytes(input, output))

describe('Snappy', () => {
  it('gives any bytes back', () => {
    const pieces = fc.array(fc.tuple(fc.uint8Array({ maxLength: 90 }), fc.nat(6)), {
      maxLength: 30,
    })
    fc.assert(
      fc.property(pieces, drawn => {
        compressed(Buffer.concat(drawn.flatMap(([piece, times]) => Array(times).fill(piece))))
      }),
      { seed: 11, numRuns: 200 },
    )
  })

  it('gives texts of many blocks back, in six tenths of their bytes', () => {
    const next = random(seedOf('words', 1))
    const words = Array.from({ length: 300 }, () => Math.floor(next() * 1e6).toString(36))
    const text = Array.from({ length: 60_000 }, () => words[Math.floor(next() ** 2 * 300)]).join(
      ' ',
    )
    expect(compressed(Buffer.from(text))).toBeLessThan(text.length * 0.6)
  })

  it('makes what cannot be compressed hardly longer, and what repeats very short', () => {
    const next = random(seedOf('noise', 2))
    const noise = Uint8Array.from({ length: 200_000 }, () => next() * 256)
    expect(compressed(noise)).toBeLessThan(noise.length * 1.001)
    expect(compressed(new Uint8Array(200_000))).toBeLessThan(200_000 / 20)
  })

  it('gives numbers back, whose runs it shortens', () => {
    const runs = fc.array(fc.tuple(fc.integer(), fc.integer(), fc.nat(40)), { maxLength: 40 })
    fc.assert(
      fc.property(runs, fc.constantFrom(1 as const, 2 as const), (drawn, stride) => {
        const words = Int32Array.from(
          drawn.flatMap(([low, high, times]) => Array(times).fill([low, high]).flat()),
        )
        expectBack(new Uint8Array(words.buffer), output => compressRuns(words, stride, output))
      }),
      { seed: 12, numRuns: 200 },
    )
    const zeros = new Int32Array(50_000)
    const size = expectBack(new Uint8Array(zeros.buffer), out => compressRuns(zeros, 1, out))
    expect(size).toBeLessThan(zeros.byteLength / 20)
  })
})
