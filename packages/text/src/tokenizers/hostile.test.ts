import { describe, expect, it } from 'vitest'
import { openTokenizer } from './tokenizer.ts'

const bytes = Object.fromEntries(
  Array.from({ length: 256 }, (_, byte) => {
    const token = `<0x${byte.toString(16).toUpperCase().padStart(2, '0')}>`
    return [token, byte]
  }),
)

function definitionOf(parts: object) {
  const model = { type: 'WordLevel', vocab: bytes, byte_fallback: true }
  return { model, decoder: { type: 'Fuse' }, ...parts }
}

const split = (Regex: string) => ({ type: 'Split', pattern: { Regex }, behavior: 'Isolated' })
const replace = (Regex: string) => ({ type: 'Replace', pattern: { Regex }, content: 'x' })

describe('H6: a tokenizer file that is hostile', () => {
  const text = 'a'.repeat(100_000)

  it.each(['(?:a+)+b', 'a*a*a*b', 'a+x|a', '(?>a+)x|a', '(?:a|aa)+$b'])(
    'cuts by %s in the time that the text is long',
    pattern => {
      const tokenizer = openTokenizer({
        tokenizer: definitionOf({ pre_tokenizer: split(pattern), normalizer: replace(pattern) }),
      })
      const ids = tokenizer.encode(text)
      expect(ids).toHaveLength(text.length)
    },
  )

  it('with a million unknown characters is read in the time that the text is long', () => {
    const added_tokens = [{ id: 0, content: '<unk>', special: true }]
    const pairs = { type: 'BPE', vocab: { '<unk>': 0 }, merges: [], unk_token: '<unk>' }
    const scored = { type: 'Unigram', vocab: [['<unk>', 0]], unk_id: 0 }
    const count = (model: object) =>
      openTokenizer({ tokenizer: { model, added_tokens } }).encode('é'.repeat(1_000_000)).length
    expect(count(pairs)).toBe(1_000_000)
    expect(count(scored)).toBe(1)
  })

  it('has no words and tokens that take the square of their length', () => {
    const long = { type: 'Unigram', vocab: [['a'.repeat(1001), -1]], unk_id: 0 }
    expect(() => openTokenizer({ tokenizer: { model: long } })).toThrow('at most 1000')
    const words = { type: 'WordPiece', vocab: { a: 0 }, unk_token: 'a' }
    const open = (max_input_chars_per_word: number) =>
      openTokenizer({ tokenizer: { model: { ...words, max_input_chars_per_word } } })
    expect(() => open(1e9)).toThrow('at most 1000')
    expect(open(100).encode('a')).toHaveLength(1)
  })
})
