import { readFileSync } from 'node:fs'
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { readImageHeader } from './header.ts'
import { ImageRefusedError } from './layout.ts'

interface Row {
  readonly name: string
  readonly kind: string
  readonly stored: readonly [number, number]
  readonly shown: readonly [number, number]
  readonly animated: boolean
  readonly bytes: string
}

const fixture = new URL('../../../../test/fixtures/image-headers.jsonl', import.meta.url)
const rows = readFileSync(fixture, 'utf8')
  .trim()
  .split('\n')
  .map(line => JSON.parse(line) as Row)

describe('the header of an image', () => {
  it.each(rows)('$name says what Pillow reads', ({ kind, stored, shown, animated, bytes }) => {
    const header = readImageHeader(Buffer.from(bytes, 'base64'))
    expect(header).toMatchObject({ kind, width: shown[0], height: shown[1], isAnimated: animated })
    expect([header.stored.width, header.stored.height]).toEqual(stored)
  })

  it('of a cut or damaged file is refused or read, and never anything else', () => {
    const files = rows.map(({ bytes }) => Buffer.from(bytes, 'base64'))
    const damage = fc.tuple(fc.constantFrom(...files), fc.nat(), fc.nat(), fc.nat(255))
    fc.assert(
      fc.property(damage, ([file, cut, at, byte]) => {
        const damaged = Buffer.from(file.subarray(0, cut % (file.length + 1)))
        if (damaged.length > 0) damaged[at % damaged.length] = byte
        try {
          expect(readImageHeader(damaged).width).toBeGreaterThan(0)
        } catch (error) {
          expect(error).toBeInstanceOf(ImageRefusedError)
        }
      }),
      { numRuns: 2000, seed: 20261119 },
    )
  })

  it('is not read of SVG, of nothing, or of another kind, and the reason is told', () => {
    const refuse = (content: string, reason: RegExp) =>
      expect(() => readImageHeader(Buffer.from(content))).toThrow(reason)
    refuse('<svg xmlns="http://www.w3.org/2000/svg"/>', /SVG is refused/)
    refuse('<?xml version="1.0"?><svg/>', /SVG is refused/)
    refuse('', /it is empty/)
    refuse('%PDF-1.7', /begins with 25 50 44 46/)
  })
})
