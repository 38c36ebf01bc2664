import { expect, it } from 'vitest'
import { readNormalizer } from './normalizers/normalizers.ts'
import { inertInUnicode9 } from './unicode.ts'

it('normalizes as Unicode 9 did: later marks neither move nor compose', () => {
  const nfc = readNormalizer({ type: 'NFC' })!
  const normalized = (text: string) => nfc({ text }).text
  expect(normalized('e\u0301')).toBe('é')
  expect(normalized('a\u07fd\u0301')).toBe('a\u07fd\u0301')
  expect(normalized('q\u0301\u{1e08f}\u0316e\u0301')).toBe('q\u0301\u{1e08f}\u0316é')
  expect(normalized('\u{105d2}\u0307')).toBe('\u{105d2}\u0307')
  expect(readNormalizer({ type: 'NFKC' })!({ text: '㋿ﬁ' }).text).toBe('㋿fi')
})

it('normalizes every character beside a letter and a syllable as Node does, inert ones aside', () => {
  const normalize = readNormalizer({ type: 'NFC' })!
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
