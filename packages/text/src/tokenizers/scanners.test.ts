import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { toRegExp } from './patterns.ts'
import { scannedPatterns, scannerOf } from './scanners.ts'

const runs = process.env.ESPALIER_SOAK ? 20_000 : 150

/** Characters of every kind that a pattern tells apart, in runs. */
const anyText = fc
  .array(
    fc.oneof(
      fc.constantFrom(
        ...[
          'a',
          'Z',
          'ß',
          'İ',
          'ſ',
          'K',
          'ǅ',
          'ʰ',
          '中',
          '\u0301',
          '\u{e0101}',
          '7',
          '٣',
          '½',
          '𝟘',
        ],
        ...[' ', '  ', '\t', '\n', '\r', '\n\n', '\u00a0', '\u0085', '\u3000', '\u2028', '\ufeff'],
        ...[
          "'",
          "'s",
          "'S",
          "'ſ",
          "'ll",
          "'lL",
          "'r",
          "'re",
          "'v",
          "'VE",
          "'d",
          "'x",
          '/',
          '.',
          '!?',
        ],
        ...['𝔘', '𐐀', '𐐨', '😀', '\u200d', '\ud7ff', '\u{10ffff}', '\u{88f}', '\u0295', '_', '<|'],
      ),
      fc.string({ unit: 'grapheme', maxLength: 3 }),
      fc.string({ unit: 'binary', maxLength: 3 }).map(text => text.replace(/\p{Surrogate}/gu, '')),
    ),
    { maxLength: 14 },
  )
  .map(parts => parts.join(''))

function scanAll(pattern: string, text: string): string[] {
  const scan = scannerOf(pattern)!
  const units = Uint16Array.from({ length: text.length }, (_, at) => text.charCodeAt(at))
  const pieces: string[] = []
  for (let at = 0; at < text.length; ) {
    const end = scan(units, at, text.length)
    pieces.push(text.slice(at, end))
    at = end
  }
  return pieces
}

describe.each(scannedPatterns.map(pattern => [pattern]))('%s', pattern => {
  it('is scanned as the regular expression matches', () => {
    const expression = toRegExp(pattern)
    fc.assert(
      fc.property(anyText, text => {
        expect(scanAll(pattern, text)).toEqual(text.match(expression) ?? [])
      }),
      { numRuns: runs, seed: 7 },
    )
  })
})

it('never looks beyond the end it is given', () => {
  const units = Uint16Array.from("x  'll", character => character.charCodeAt(0))
  for (const pattern of scannedPatterns) {
    const scan = scannerOf(pattern)!
    expect(scan(units, 1, 3)).toBe(3)
    expect(scan(units, 3, 5)).toBeLessThanOrEqual(5)
  }
})

it('has no scanner for other patterns', () => {
  expect(scannerOf('\\p{L}+')).toBeUndefined()
})
