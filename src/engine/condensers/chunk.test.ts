import type { Message } from '@espalier/text'
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { chunkText, codePoints } from './chunk.ts'
import { chunkMessages, withChunks } from './chunk-messages.ts'

/** The promise is 100,000 random inputs; a small share of them in every run of the tests. */
const runs = process.env.ESPALIER_SOAK ? 100_000 : 2000

const words = fc.constantFrom(
  'tree',
  '苹果',
  '東京',
  '서울',
  '👩‍👩‍👧‍👦',
  '🏳️‍🌈',
  'e\u0301',
  '3.14',
  'https://a.b/c',
  '\ud83d',
  'x'.repeat(40),
  '漢'.repeat(40),
)
const gaps = fc.constantFrom(
  '',
  ' ',
  '. ',
  '。',
  '，',
  '\n',
  '\n\n',
  '; ',
  '! ',
  '\u3000',
  '.',
  ',',
)
const texts = fc.oneof(
  fc.array(fc.tuple(words, gaps), { maxLength: 40 }).map(pairs => pairs.flat().join('')),
  fc.string({ unit: 'binary', maxLength: 80 }),
  fc.string({ unit: 'grapheme', maxLength: 80 }),
)
const sizes = fc.integer({ min: 1, max: 60 })
/** A measure that, as tokens do, knows nothing of characters. */
const tokens = (text: string) => text.split(/(?<=\s)|(?=[^\x20-\x7e])/u).length
const options = fc.record(
  {
    size: sizes,
    measure: fc.constant(tokens),
    boundary: fc.constantFrom(/(?<=\n\n)/, /^/m, /[A-Z]\w*:/, /\n\n/),
  },
  { requiredKeys: ['size'] },
)

describe('chunkText', () => {
  it('gives the text back, to the last code unit, and no chunk is larger than it has to be', () => {
    fc.assert(
      fc.property(texts, options, (text, chosen) => {
        const chunks = chunkText(text, chosen)
        expect(chunks.join('')).toBe(text)
        expect(chunks.every(chunk => chunk !== '')).toBe(true)
        const { size, measure = codePoints } = chosen
        for (const chunk of chunks) {
          if (measure(chunk) <= size) continue
          expect(measure).not.toBe(codePoints)
          expect(codePoints(chunk)).toBeLessThanOrEqual(9)
        }
      }),
      { numRuns: runs, seed: 8 },
    )
  })

  it.each([
    ['line1\nline2\nline3\nline4', { size: 10 }, ['line1\n', 'line2\n', 'line3\n', 'line4']],
    ['aaa|bbb|ccccccccc|dd', { size: 10, separators: ['|'] }, ['aaa|bbb|', 'ccccccccc|', 'dd']],
    [
      'Alpha one. Beta two. Gamma three. Delta',
      { size: 20 },
      ['Alpha one. Beta two.', ' Gamma three. Delta'],
    ],
    [
      'Question: Who?\n\nContext:\n\nA: aaa.\n\nB: bbb.',
      { boundary: /(?<=\n\n)/ },
      ['Question: Who?\n\n', 'Context:\n\n', 'A: aaa.\n\n', 'B: bbb.'],
    ],
  ])('cuts %j as the worked examples do', (text, chosen, expected) => {
    expect(chunkText(text, chosen)).toEqual(expected)
  })

  it('cuts at the size exactly, and never one above it', () => {
    expect(chunkText('x'.repeat(10), { size: 10 })).toHaveLength(1)
    expect(chunkText('x'.repeat(11), { size: 10 })).toEqual(['x'.repeat(10), 'x'])
    expect(chunkText('漢字。仮名。', { size: 3 })).toEqual(['漢字。', '仮名。'])
  })

  it('keeps decimals, addresses and signs of several code points whole where it can', () => {
    expect(
      chunkText('It is 3.1415 here. See https://example.org/a.b for more', { size: 30 }),
    ).toEqual(['It is 3.1415 here. See ', 'https://example.org/a.b for ', 'more'])
    const family = '👨‍👩‍👧'
    expect(chunkText(family.repeat(3), { size: 7 })).toEqual([family, family, family])
    const [flag, other] = ['🇩🇪', '🏴󠁧󠁢󠁥󠁮󠁧󠁿']
    expect(chunkText(flag.repeat(3), { size: 3 })).toEqual([flag, flag, flag])
    expect(chunkText(other.repeat(2), { size: 9 })).toEqual([other, other])
  })

  it('never puts passages together, and cuts a long one alone', () => {
    const boundary = /(?<=\n\n)/
    expect(chunkText('a\n\nb\n\n \n\nccccc ccccc', { size: 6, boundary })).toEqual([
      'a\n\n',
      'b\n\n',
      ' \n\n',
      'ccccc ',
      'ccccc',
    ])
  })

  it('refuses sizes below 1', () => {
    expect(() => chunkText('a', { size: 0 })).toThrow("A chunk's size is 0; it must be at least 1.")
    expect(() => chunkText('a', { size: Number.NaN })).toThrow(RangeError)
  })

  it.each(['.', '. ', '\n', 'x', '漢', 'e\u0301', '\u0301', '👩‍👩‍👧‍👦', '\ud83d', ',. ;'])(
    'a million times %j is cut in seconds, where more than linear time would take hours',
    unit => {
      const text = unit.repeat(1_000_000 / unit.length)
      expect(chunkText(text).join('')).toBe(text)
    },
  )
})

describe('chunkMessages', () => {
  const image = { type: 'image_url', image_url: { url: 'data:,' } } as const
  const conversation: readonly Message[] = [
    { role: 'user', content: 'q'.repeat(25) },
    {
      role: 'assistant',
      content: null,
      reasoning_content: 'hm',
      tool_calls: [
        { id: 'c1', type: 'function', function: { name: 'f', arguments: '{}' } },
        { id: 'c2', type: 'function', function: { name: 'f', arguments: '{}' } },
      ],
    },
    { role: 'tool', tool_call_id: 'c1', content: 'r1 '.repeat(8) },
    { role: 'tool', tool_call_id: 'c2', content: 'r2' },
    { role: 'assistant', content: '' },
    { role: 'user', content: [{ type: 'text', text: 'x'.repeat(12) }, image] },
  ]

  it('chunks every message, and nothing is merged, dropped or lost on the way back', () => {
    const chunks = chunkMessages(conversation, { size: 10 })
    expect(chunks.map(({ message }) => message)).toEqual([0, 0, 0, 2, 2, 2, 3, 5, 5])
    expect(withChunks(conversation, chunks, ({ text }) => text)).toEqual(conversation)
    expect(withChunks(conversation, chunks, ({ text }) => text)[0]).toBe(conversation[0])
  })

  it('replaces chunks where they stand and keeps calls, ids and images', () => {
    const chunks = chunkMessages(conversation, { size: 10 })
    const changed = withChunks(conversation, chunks, ({ text, message }) =>
      message === 2 || message === 5 ? `<${text.length}>` : text,
    )
    expect(changed[2]).toEqual({ role: 'tool', tool_call_id: 'c1', content: '<9><9><6>' })
    expect(changed[5]).toEqual({
      role: 'user',
      content: [{ type: 'text', text: '<10><2>' }, image],
    })
    expect(changed[1]).toBe(conversation[1])
  })

  it('gives any conversation back', () => {
    const message = fc.oneof(
      texts.map((content): Message => ({ role: 'user', content })),
      fc.tuple(texts, texts).map(
        ([one, two]): Message => ({
          role: 'user',
          content: [{ type: 'text', text: one }, image, { type: 'text', text: two }],
        }),
      ),
      texts.map((content): Message => ({ role: 'tool', tool_call_id: 'c', content })),
      fc.constant<Message>({ role: 'assistant', content: null }),
    )
    fc.assert(
      fc.property(fc.array(message, { maxLength: 6 }), options, (messages, chosen) => {
        const chunks = chunkMessages(messages, chosen)
        const same = withChunks(messages, chunks, ({ text }) => text)
        expect(same).toEqual(messages)
        const copied = withChunks(messages, chunks, ({ text }) => `${text}`)
        expect(copied.every((each, index) => each === messages[index])).toBe(true)
      }),
      { numRuns: Math.ceil(runs / 10), seed: 9 },
    )
  })
})
