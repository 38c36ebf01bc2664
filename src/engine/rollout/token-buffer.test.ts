import { crc32 } from 'node:zlib'
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { makeTokenBuffer } from './token-buffer.ts'

const plain = (ids: readonly number[]): number => crc32(new Uint8Array(Int32Array.from(ids).buffer))

describe('the digest of a path', () => {
  it('is that of all its tokens, however they came and whenever it was asked for', () => {
    const growing = fc.array(fc.tuple(fc.array(fc.nat(200_000)), fc.boolean()))
    fc.assert(
      fc.property(growing, fc.nat(), (parts, cut) => {
        const buffer = makeTokenBuffer(new Int32Array(0))
        const all: number[] = []
        for (const [ids, isAsked] of parts) {
          buffer.append(Int32Array.from(ids))
          all.push(...ids)
          if (isAsked) expect(buffer.digest(all.length)).toBe(plain(all))
        }
        const shorter = cut % (all.length + 1)
        expect(buffer.digest(shorter)).toBe(plain(all.slice(0, shorter)))
        expect(buffer.fork(shorter).digest(shorter)).toBe(plain(all.slice(0, shorter)))
      }),
      { seed: 7 },
    )
  })
})
