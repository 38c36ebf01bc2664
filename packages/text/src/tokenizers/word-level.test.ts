import fc from 'fast-check'
import { expect, it } from 'vitest'
import { openTokenizer } from './tokenizer.ts'

const byteNames = Array.from(
  { length: 256 },
  (_, byte) => `<0x${byte.toString(16).toUpperCase().padStart(2, '0')}>`,
)
const words = [...byteNames, ' the', 'the', ' desk', 'pears', '.', '<|end|>', 'é']
const vocab = Object.fromEntries(words.map((word, id) => [word, id]))
const split = { type: 'Split', pattern: { Regex: ' ?\\p{L}+|[^\\p{L}]' }, behavior: 'Isolated' }
const end = { id: 0, content: '<|end|>', special: true }
const definition = {
  model: { type: 'WordLevel', vocab, byte_fallback: true },
  pre_tokenizer: split,
  decoder: { type: 'Sequence', decoders: [{ type: 'ByteFallback' }, { type: 'Fuse' }] },
  added_tokens: [end],
}
const tokenizer = openTokenizer({ tokenizer: definition })

it('spells unknown words in bytes', () => {
  const ids = Array.from(tokenizer.encode('the desk ü.<|end|>'))
  expect(ids.map(id => tokenizer.tokenOf(id))).toEqual([
    ...['the', ' desk', '<0x20>', '<0xC3>', '<0xBC>', '.', '<|end|>'],
  ])
  expect(tokenizer.decode(ids, { skipSpecial: true })).toBe('the desk ü.')
})

it('gives every text back, also text that spells its tokens', () => {
  const anyText = fc
    .array(fc.oneof(fc.string({ unit: 'grapheme' }), fc.constantFrom(...words)))
    .map(parts => parts.join(' '))
  fc.assert(
    fc.property(anyText, text => {
      expect(tokenizer.decode(tokenizer.encode(text))).toBe(text)
      expect(tokenizer.decode(tokenizer.encodeOrdinary(text))).toBe(text)
      expect(tokenizer.encodeOrdinary(text)).not.toContain(tokenizer.idOf('<|end|>'))
    }),
    { numRuns: 200, seed: 11 },
  )
})

it('streams bytes as whole characters', () => {
  const decoder = tokenizer.makeDecoder()
  expect(decoder.push([0xf0, 0x9f, 0x98])).toBe('')
  expect(decoder.push([0x80])).toBe('😀')
  expect(decoder.push([0xc3])).toBe('')
  expect(decoder.push([vocab.the!])).toBe('\ufffdthe')
  expect(decoder.push([0xe4]) + decoder.end()).toBe('\ufffd')
})

it('needs all bytes, a decoder that joins, and a token for what it does not know', () => {
  const open = (changed: object) => () =>
    openTokenizer({ tokenizer: { ...definition, ...changed } })
  const few = { type: 'WordLevel', vocab: { a: 0 }, byte_fallback: true }
  expect(open({ model: few })).toThrow('byte_fallback needs the token <0x00>')
  expect(open({ decoder: null })).toThrow('byte_fallback needs the decoder Fuse')
  expect(open({ pre_tokenizer: { type: 'ByteLevel' } })).toThrow(/cannot read ByteLevel pieces/)
  expect(open({ pre_tokenizer: { type: 'Magic' } })).toThrow(
    /"Magic" is not known. Known: ByteLevel/,
  )
  const bare = { type: 'WordLevel', vocab: { a: 0 } }
  const strict = open({ model: bare, decoder: null, pre_tokenizer: { type: 'WhitespaceSplit' } })()
  expect(Array.from(strict.encode(' a  a'))).toEqual([0, 0])
  expect(strict.decode([0, 0])).toBe('a a')
  expect(() => strict.encode('a b')).toThrow('no token for "b", and no unk_token')
})
