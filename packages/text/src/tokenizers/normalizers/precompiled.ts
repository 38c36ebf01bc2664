import type { Pattern } from '../../patterns/pattern.ts'
import { type Fields, readText } from '../fields.ts'
import { type Normalizer, rewriteEach } from './rewriting.ts'

const segmenter = new Intl.Segmenter('und', { granularity: 'grapheme' })

/** The engine takes the square of a text's length, so it is given windows of so many units. */
const WINDOW = 256

/** What a person takes for one character. */
const graphemes: Pick<Pattern, 'forEach'> = {
  forEach(text, found) {
    for (let start = 0; start < text.length; ) {
      const window = text.slice(start, start + WINDOW)
      const isLast = start + WINDOW >= text.length
      const starts = Array.from(segmenter.segment(window), ({ index }) => index)
      // The last one may go on behind the window, unless it fills all of it.
      const ends = isLast || starts.length === 1 ? [...starts, window.length] : starts
      for (let at = 0; at < ends.length - 1; at++) found(start + ends[at]!, start + ends[at + 1]!)
      start += ends.at(-1)!
    }
  },
}

/** Longer characters are looked up code point by code point, in bytes. */
const LONGEST_WHOLE = 5

/** SentencePiece's table of what replaces what, as an array of a trie and the texts it leads to. */
export function precompiled(fields: Fields): Normalizer {
  const given = fields.precompiled_charsmap ?? ''
  const bytes = Buffer.from(readText(given, 'precompiled_charsmap'), 'base64')
  if (bytes.length === 0) return input => input
  const size = bytes.length < 4 ? Number.POSITIVE_INFINITY : bytes.readUInt32LE(0)
  if (4 + size > bytes.length) throw new Error('precompiled_charsmap ends before its trie does')
  const trie = Array.from({ length: size >> 2 }, (_, at) => bytes.readUInt32LE(4 + 4 * at))
  const texts = bytes.subarray(4 + size)
  const replacementOf = (text: string): string | undefined => {
    const start = shortestIn(trie, Buffer.from(text))
    if (start === undefined) return undefined
    const end = texts.indexOf(0, start)
    return texts.toString('utf8', start, end < 0 ? texts.length : end)
  }
  return rewriteEach(graphemes, character => {
    const whole =
      Buffer.byteLength(character) <= LONGEST_WHOLE ? replacementOf(character) : undefined
    return whole ?? Array.from(character, point => replacementOf(point) ?? point).join('')
  })
}

/** The value of the shortest entry that a key begins with: the reference looks no further. */
function shortestIn(trie: readonly number[], key: Uint8Array): number | undefined {
  let at = offsetOf(trie[0] ?? 0)
  for (const byte of key) {
    if (byte === 0) return undefined
    at ^= byte
    const unit = trie[at]
    if (unit === undefined || (unit & 0x800000ff) !== byte) return undefined
    at ^= offsetOf(unit)
    if (((unit >>> 8) & 1) === 1) return (trie[at] ?? 0) & 0x7fffffff
  }
  return undefined
}

function offsetOf(unit: number): number {
  return (unit >>> 10) << ((unit & 0x200) >>> 6)
}
