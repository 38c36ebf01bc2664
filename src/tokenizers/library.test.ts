import { describe, expect, it } from 'vitest'
import { openTokenizer } from './tokenizer.ts'

const metaspace = { type: 'Metaspace', replacement: '▁', prepend_scheme: 'always' }
const control = { single_word: false, lstrip: false, rstrip: false, normalized: false }
const added_tokens = [
  { id: 0, content: '<unk>', special: true, ...control },
  { id: 1, content: '</s>', special: true, ...control },
]

describe('Unigram', () => {
  const vocab = [
    ...[
      ['<unk>', 0],
      ['</s>', 0],
      ['▁', -2],
      ['▁the', -1.5],
      ['</', -3],
      ['s', -3],
      ['>', -3],
    ],
    ...[
      ['<', -3.5],
      ['/', -3.5],
      ['t', -4],
      ['h', -4],
      ['e', -4],
    ],
  ]
  const tokenizer = openTokenizer({
    tokenizer: {
      model: { type: 'Unigram', unk_id: 0, vocab },
      normalizer: { type: 'NFKC' },
      pre_tokenizer: metaspace,
      decoder: metaspace,
      added_tokens,
    },
  })
  const tokens = (ids: Int32Array) => Array.from(ids, id => tokenizer.tokenOf(id))

  it('encodes through the library, with control tokens cut out by us', () => {
    expect(tokens(tokenizer.encode('the</s>the'))).toEqual(['▁the', '</s>', '▁the'])
    expect(tokens(tokenizer.encode('the 中'))).toEqual(['▁the', '▁', '<unk>'])
    expect(tokenizer.decode(tokenizer.encode('the the'))).toBe('the the')
    expect(tokenizer.decode([])).toBe('')
    expect(tokenizer.bytesOf).toBeUndefined()
  })

  it('[T6] data does not become a control token, though the model knows the string', () => {
    const spelled = ['▁', '<', '/', 's', '>']
    expect(tokens(tokenizer.encodeOrdinary('</s>'))).toEqual(spelled)
    expect(tokens(tokenizer.encode('</s>the', { foreign: [[0, 2]] })).slice(0, 5)).toEqual(spelled)
    expect(tokenizer.encodeOrdinary('</s>'.repeat(20_000))).toHaveLength(80_001)
  })

  it('streams as it decodes', () => {
    const ids = tokenizer.encode('the the</s> the')
    const decoder = tokenizer.openDecoder({ skipSpecial: true })
    const told = Array.from(ids, id => decoder.push([id])).join('') + decoder.end()
    expect(told).toBe(tokenizer.decode(ids, { skipSpecial: true }))
  })
})

describe('SentencePiece BPE', () => {
  const bytes = Array.from(
    { length: 256 },
    (_, byte) => `<0x${byte.toString(16).toUpperCase().padStart(2, '0')}>`,
  )
  const words = ['<unk>', '</s>', ...bytes, '▁', 't', 'h', 'e', 'he', '▁t', '▁the']
  const tokenizer = openTokenizer({
    tokenizer: {
      model: {
        type: 'BPE',
        unk_token: '<unk>',
        fuse_unk: true,
        byte_fallback: true,
        vocab: Object.fromEntries(words.map((word, id) => [word, id])),
        merges: ['h e', '▁ t', '▁t he'],
      },
      normalizer: {
        type: 'Sequence',
        normalizers: [
          { type: 'Prepend', prepend: '▁' },
          { type: 'Replace', pattern: { String: ' ' }, content: '▁' },
        ],
      },
      decoder: {
        type: 'Sequence',
        decoders: [
          { type: 'Replace', pattern: { String: '▁' }, content: ' ' },
          { type: 'ByteFallback' },
          { type: 'Fuse' },
          { type: 'Strip', content: ' ', start: 1, stop: 0 },
        ],
      },
      added_tokens,
    },
  })

  it('puts its prefix before every text between control tokens', () => {
    const ids = Array.from(tokenizer.encode('the</s>the é'))
    expect(ids.map(id => tokenizer.tokenOf(id))).toEqual([
      ...['▁the', '</s>', '▁the', '▁', '<0xC3>', '<0xA9>'],
    ])
    expect(tokenizer.decode(ids)).toBe('the</s> the é')
  })

  it('takes a run of bytes that is no UTF-8 for as many U+FFFD, also in a stream', () => {
    const ids = ['<0xE4>', '<0x41>', '▁the', '<0x41>'].map(token => tokenizer.idOf(token)!)
    expect(tokenizer.decode(ids)).toBe('\ufffd\ufffd theA')
    const decoder = tokenizer.openDecoder()
    expect(ids.map(id => decoder.push([id]))).toEqual(['', '', '\ufffd\ufffd the', ''])
    expect(decoder.end()).toBe('A')
  })
})

it('WordPiece words are joined as the reference joins them', () => {
  const vocab = { '[UNK]': 0, do: 1, '##n': 2, "'": 3, t: 4, '.': 5, n: 6 }
  const tokenizer = openTokenizer({
    tokenizer: {
      model: { type: 'WordPiece', unk_token: '[UNK]', continuing_subword_prefix: '##', vocab },
      normalizer: null,
      pre_tokenizer: { type: 'BertPreTokenizer' },
      decoder: { type: 'WordPiece', prefix: '##', cleanup: true },
      added_tokens: [],
    },
  })
  const ids = tokenizer.encode('don do.')
  expect(Array.from(ids)).toEqual([1, 2, 1, 5])
  expect(tokenizer.decode(ids)).toBe('don do.')
})
