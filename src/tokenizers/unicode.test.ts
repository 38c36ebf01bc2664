import { expect, it } from 'vitest'
import { openNormalizer } from './normalizers.ts'
import {
  CASELESS,
  inertInUnicode9,
  kindTable,
  LOWER,
  MARK,
  NEWLINE,
  NUMBER,
  SPACE,
  UPPER,
} from './unicode.ts'

it('has as many code points of each kind as the reference, whatever Unicode this Node knows', () => {
  const counts = new Map<number, number>()
  for (const kind of kindTable()) counts.set(kind, (counts.get(kind) ?? 0) + 1)
  // Counted with the regular expressions of tokenizers 0.23 over all code points.
  expect(counts.get(UPPER)).toBe(1858 + 31)
  expect(counts.get(LOWER)).toBe(2258)
  expect(counts.get(CASELESS)).toBe(404 + 136_477)
  // The 240 variation selectors of plane 14 lie behind the table.
  expect(counts.get(MARK)).toBe(2501 - 240)
  expect(counts.get(NUMBER)).toBe(1911)
  expect(counts.get(SPACE)! + counts.get(NEWLINE)!).toBe(25)
})

it('normalizes as Unicode 9 did: later marks neither move nor compose', () => {
  const nfc = openNormalizer({ type: 'NFC' })!
  const normalized = (text: string) => nfc({ text }).text
  expect(normalized('e\u0301')).toBe('é')
  expect(normalized('a\u07fd\u0301')).toBe('a\u07fd\u0301')
  expect(normalized('q\u0301\u{1e08f}\u0316e\u0301')).toBe('q\u0301\u{1e08f}\u0316é')
  expect(normalized('\u{105d2}\u0307')).toBe('\u{105d2}\u0307')
  expect(openNormalizer({ type: 'NFKC' })!({ text: '㋿ﬁ' }).text).toBe('㋿fi')
})

it('normalizes every character beside a letter and a syllable as Node does, inert ones aside', () => {
  const normalize = openNormalizer({ type: 'NFC' })!
  const isInert = new RegExp(`[${inertInUnicode9}]`, 'u')
  const wrong: string[] = []
  for (let point = 0; point < 0x20000; point++) {
    const character = String.fromCodePoint(point)
    if (!character.isWellFormed() || isInert.test(character)) continue
    const text = `e${character}가${character}`
    if (normalize({ text }).text !== text.normalize('NFC')) wrong.push(character)
  }
  expect(wrong).toEqual([])
})
