import { describe, expect, it } from 'vitest'
import type { MarkedText } from '../../tokenizers/tokenizer.ts'
import { makeRecentIds } from './recent-ids.ts'

/** Encodes each part as one id: how many were encoded so far. */
function openCounting() {
  let count = 0
  const encode = makeRecentIds({ encodeParts: () => Int32Array.of(++count) })
  return (
    text: string,
    { foreign = [], isFirst = false }: Partial<MarkedText & { isFirst: boolean }> = {},
  ) => encode({ text, foreign }, isFirst)
}

const page = (letter = 'a'): string => `${'x'.repeat(300)}${letter}${'x'.repeat(400)}`

describe('recent ids', () => {
  it('encodes a text once', () => {
    const encode = openCounting()
    const first = encode(page())
    expect(first).toEqual(Int32Array.of(1))
    expect(encode(page())).toBe(first)
  })

  it('tells apart what is encoded in other ways, and texts that look alike', () => {
    const encode = openCounting()
    const all = [
      encode(page()),
      // It differs where no character is looked at.
      encode(page('b')),
      encode(page(), { isFirst: true }),
      encode(page(), { foreign: [[3, 9]] }),
      encode(page(), { foreign: [[3, 8]] }),
    ]
    expect(all).toEqual([1, 2, 3, 4, 5].map(count => Int32Array.of(count)))
    expect(encode(page('b'))).toBe(all[1])
    expect(encode(page(), { foreign: [[3, 9]] })).toBe(all[3])
  })

  it('forgets the oldest, and leaves short and long texts alone', () => {
    const encode = openCounting()
    const texts = Array.from({ length: 65 }, (_, index) => `${index}${page()}`)
    const [first, second] = texts.map(text => encode(text))
    expect(encode(texts[1]!)).toBe(second)
    expect(encode(texts[0]!)).not.toBe(first)
    for (const text of ['short', 'long'.repeat(5000)]) {
      expect(encode(text)).toEqual({ text, foreign: [] })
    }
  })
})
