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

  it('has nothing for Hugging Face’s library that its engine would not match in time', () => {
    const model = { type: 'Unigram', vocab: [['a', -1]], unk_id: 0 }
    for (const part of [{ pre_tokenizer: split('a+x|a') }, { normalizer: replace('(?:a+)+b') }]) {
      expect(() => openTokenizer({ tokenizer: { model, ...part } })).toThrow('may take time')
    }
    const words = { type: 'WordPiece', vocab: { a: 0 }, unk_token: 'a' }
    const open = (max_input_chars_per_word: number) =>
      openTokenizer({ tokenizer: { model: { ...words, max_input_chars_per_word } } })
    expect(() => open(1e9)).toThrow('at most 1000')
    expect(open(100).encode('a')).toHaveLength(1)
  })
})
