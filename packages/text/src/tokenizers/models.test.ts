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

  it('takes the tokens with the best scores, control tokens cut out', () => {
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
    const decoder = tokenizer.makeDecoder({ skipSpecial: true })
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
    const decoder = tokenizer.makeDecoder()
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

const byteTokens = Array.from(
  { length: 256 },
  (_, byte) => `<0x${byte.toString(16).toUpperCase().padStart(2, '0')}>`,
)

describe('[T2] what the vocabulary does not know', () => {
  it('becomes bytes in a Unigram model with byte_fallback, not the unknown token', () => {
    const vocab = ['<unk>', ...byteTokens, '▁', '▁a'].map(token => [token, -2])
    const model = { type: 'Unigram', unk_id: 0, vocab, byte_fallback: true }
    const decoder = {
      type: 'Sequence',
      decoders: [
        { type: 'Replace', pattern: { String: '▁' }, content: ' ' },
        { type: 'ByteFallback' },
        { type: 'Fuse' },
      ],
    }
    const tokenizer = openTokenizer({
      tokenizer: { model, pre_tokenizer: metaspace, decoder, added_tokens: [] },
    })
    const ids = tokenizer.encode('a 中文')
    expect(Array.from(ids, id => tokenizer.tokenOf(id))).toEqual([
      ...['▁a', '▁', '<0xE4>', '<0xB8>', '<0xAD>', '<0xE6>', '<0x96>', '<0x87>'],
    ])
    expect(tokenizer.decode(ids)).toBe(' a 中文')
  })

  it('is one unknown token or many in a BPE model, as fuse_unk says', () => {
    const open = (fuse_unk: boolean) =>
      openTokenizer({
        tokenizer: {
          model: {
            type: 'BPE',
            vocab: { '<unk>': 0, a: 1 },
            merges: [],
            unk_token: '<unk>',
            fuse_unk,
          },
          added_tokens: [],
        },
      })
    expect([...open(true).encode('aéüa')]).toEqual([1, 0, 1])
    expect([...open(false).encode('aéüa')]).toEqual([1, 0, 0, 1])
  })
})

describe('[T2] BPE over characters', () => {
  const open = (model: object, added: readonly string[] = []) =>
    openTokenizer({
      tokenizer: {
        normalizer: { type: 'Replace', pattern: { String: ' ' }, content: '▁' },
        model: { type: 'BPE', unk_token: '<unk>', ...model },
        added_tokens: added.map(content => ({ content, ...control, special: false })),
      },
    })
  const vocab = {
    '<unk>': 0,
    '▁': 1,
    '▁▁': 2,
    '▁▁▁': 3,
    '\n': 4,
    '\n\n': 5,
    a: 6,
    b: 7,
    ab: 8,
    abb: 9,
  }
  const merges = ['▁ ▁', '▁▁ ▁', '\n \n', 'a b']

  it('makes runs of blanks one token though the file lists them among the added ones, as Gemma does', () => {
    const tokenizer = open({ vocab, merges }, ['▁▁', '▁▁▁', '\n', '\n\n'])
    expect([...tokenizer.encode('a   b  a')]).toEqual([6, 3, 7, 2, 6])
    expect([...tokenizer.encode('a  \n\n', { foreign: [[0, 5]] })]).toEqual([6, 2, 5])
  })

  it('takes a whole piece for its token with ignore_merges', () => {
    expect([...open({ vocab, merges }).encode('abb')]).toEqual([8, 7])
    expect([...open({ vocab, merges, ignore_merges: true }).encode('abb')]).toEqual([9])
  })

  it('knows what continues a word and what ends one', () => {
    const parts = { '<unk>': 0, a: 1, '##b': 2, ab: 3, '##b!': 4, 'ab!': 5 }
    const affixes = { continuing_subword_prefix: '##', end_of_word_suffix: '!' }
    const tokenizer = open({ vocab: parts, merges: ['a ##b', 'a ##b!'], ...affixes })
    expect([...tokenizer.encode('ab')]).toEqual([5])
  })
})

it('a decoder of bytes streams whole characters, whatever model is before it', () => {
  const vocab = { '[UNK]': 0, ð: 1, Ł: 2, ĺ: 3, Ģ: 4 }
  const tokenizer = openTokenizer({
    tokenizer: {
      model: { type: 'BPE', vocab, merges: [], unk_token: '[UNK]' },
      pre_tokenizer: { type: 'ByteLevel', add_prefix_space: false, use_regex: true },
      decoder: { type: 'ByteLevel' },
    },
  })
  const ids = tokenizer.encode('😀')
  expect([...ids]).toEqual([1, 2, 3, 4])
  const decoder = tokenizer.makeDecoder()
  expect(Array.from(ids, id => decoder.push([id]))).toEqual(['', '', '', '😀'])
})
