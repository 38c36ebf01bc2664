import { describe, expect, it } from 'vitest'
import { readNormalizer } from './normalizers.ts'

const normalized = (fields: object, text: string) => readNormalizer({ ...fields })!({ text }).text

/** A table as SentencePiece compiles it: "ﬁ" becomes "fi", and "a" with anything behind it "A". */
function charsMap(): string {
  const leaf = 1 << 8
  const unit = (label: number, offset: number, more = 0) => ((offset << 10) | more | label) >>> 0
  const trie = new Array<number>(1024).fill(0)
  trie[0] = unit(0, 256)
  const follow = (from: number, byte: number, base: number, more = 0): number => {
    const at = from ^ byte
    trie[at] = unit(byte, at ^ base, more)
    return base
  }
  const second = follow(256, 0xef, 512)
  const third = follow(second, 0xac, 768)
  trie[follow(third, 0x81, 770, leaf)] = 0x80000000
  trie[follow(256, 0x61, 772, leaf)] = 0x80000003
  const bytes = Buffer.alloc(4 + 4 * trie.length)
  bytes.writeUInt32LE(4 * trie.length, 0)
  for (const [at, value] of trie.entries()) bytes.writeUInt32LE(value, 4 + 4 * at)
  return Buffer.concat([bytes, Buffer.from('fi\0A\0')]).toString('base64')
}

describe('normalizers', () => {
  it('read SentencePiece’s table, character by character', () => {
    const fields = { type: 'Precompiled', precompiled_charsmap: charsMap() }
    expect(normalized(fields, 'ﬁx bab')).toBe('fix bAb')
    // As the reference does it, a character with a mark is replaced as one.
    expect(normalized(fields, 'a\u0301')).toBe('A')
    expect(normalized({ type: 'Precompiled', precompiled_charsmap: '' }, 'ﬁ')).toBe('ﬁ')
    const cut = { type: 'Precompiled', precompiled_charsmap: 'AAEAAA==' }
    expect(() => readNormalizer(cut)).toThrow('ends before its trie does')
  })

  it('[H6] read SentencePiece’s table in the time that a text is long', () => {
    const fields = { type: 'Precompiled', precompiled_charsmap: charsMap() }
    expect(normalized(fields, 'bﬁ'.repeat(250_000))).toBe('bfi'.repeat(250_000))
    const stacked = `x${'\u0301'.repeat(500_000)}`
    expect(normalized(fields, stacked)).toBe(stacked)
  })

  it('[T6] keep what is foreign apart', () => {
    const fields = { type: 'Precompiled', precompiled_charsmap: charsMap() }
    const given = { text: 'bﬁb', foreign: Uint8Array.of(0, 1, 0) }
    expect(readNormalizer(fields)!(given)).toEqual({
      text: 'bfib',
      foreign: Uint8Array.of(0, 1, 1, 0),
    })
  })

  it('clean, separate and strip as BERT did', () => {
    const steps = { clean_text: true, handle_chinese_chars: true, lowercase: true }
    const fields = { type: 'BertNormalizer', ...steps, strip_accents: null }
    expect(normalized(fields, 'É\u00a0x\u0000中y\tΣ')).toBe('e x 中 y σ')
    expect(normalized({ ...fields, strip_accents: false }, 'É')).toBe('é')
  })

  it('strip marks, and the odd spaces of translations', () => {
    expect(normalized({ type: 'StripAccents' }, 'e\u0301\u0903x')).toBe('ex')
    expect(normalized({ type: 'Nmt' }, 'a\u0001b\u200bc\td')).toBe('ab c d')
  })
})
