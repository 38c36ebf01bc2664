/**
 * Where a text may be cut: after every occurrence of a string, or after a mark of punctuation that
 * white space or the end follows, so that decimals, addresses and abbreviations stay whole.
 */
export type Separator = string | { readonly mark: string }

/** How a text is cut into chunks. */
export interface ChunkOptions {
  /** Code points that a chunk has at most, or whatever `measure` counts. @default 1024 */
  readonly size?: number
  /** How long a text is. @default its code points */
  readonly measure?: (text: string) => number
  /** From coarse to fine; text that none of them cuts small enough is cut anywhere. */
  readonly separators?: readonly Separator[]
  /** Passages begin where this matches, and are never put together with others. */
  readonly boundary?: RegExp
}

/** Blank lines, lines, sentences of Chinese, Japanese and Latin scripts, clauses, words. */
const defaultSeparators: readonly Separator[] = [
  '\n\n',
  '\n',
  '。',
  '．',
  { mark: '.' },
  '！',
  { mark: '!' },
  '？',
  { mark: '?' },
  '；',
  { mark: ';' },
  '，',
  '、',
  { mark: ',' },
  ' ',
  ',',
  ';',
  '.',
]

interface Rules {
  readonly size: number
  readonly measure: (text: string) => number
  readonly separators: readonly Separator[]
}

/** A piece with its length, which is counted once. */
interface Piece {
  readonly text: string
  readonly length: number
}

/** Cuts a text into chunks that, joined, are the text again, to the last code unit. */
export function chunkText(text: string, options: ChunkOptions = {}): readonly string[] {
  const { size = 1024, measure = codePoints, separators = defaultSeparators, boundary } = options
  if (!(size >= 1)) throw new RangeError(`A chunk's size is ${size}; it must be at least 1.`)
  const rules: Rules = { size, measure, separators }
  const passages = boundary ? cutAt(text, boundary) : [text]
  return passages.flatMap(passage => chunkPassage(passage, rules))
}

function chunkPassage(passage: string, rules: Rules): readonly string[] {
  if (passage === '') return []
  const length = lengthUpTo(passage, rules)
  if (length <= rules.size) return [passage]
  const pieces: Piece[] = []
  split({ text: passage, length }, 0, { rules, pieces })
  return merge(pieces, rules.size)
}

/** A text with no more code units than allowed code points needs no counting. */
function lengthUpTo(text: string, { size, measure }: Rules): number {
  return measure === codePoints && text.length <= size ? text.length : measure(text)
}

function split(
  piece: Piece,
  level: number,
  to: { readonly rules: Rules; readonly pieces: Piece[] },
): void {
  const { rules, pieces } = to
  if (piece.length <= rules.size) {
    pieces.push(piece)
    return
  }
  const separator = rules.separators[level]
  if (separator === undefined) {
    for (const part of cutAnywhere(piece, rules)) pieces.push(part)
    return
  }
  for (const text of splitAfter(piece.text, separator)) {
    const isWhole = text.length === piece.text.length
    const part = isWhole ? piece : { text, length: lengthUpTo(text, rules) }
    split(part, level + 1, to)
  }
}

/** Pieces that end after each occurrence of a separator. */
function splitAfter(text: string, separator: Separator): readonly string[] {
  const mark = typeof separator === 'string' ? separator : separator.mark
  const isGuarded = typeof separator !== 'string'
  const pieces: string[] = []
  let start = 0
  for (let at = text.indexOf(mark); at >= 0; at = text.indexOf(mark, at + mark.length)) {
    const end = at + mark.length
    if (isGuarded && end < text.length && !isSpace(text.charCodeAt(end))) continue
    pieces.push(text.slice(start, end))
    start = end
  }
  if (start < text.length) pieces.push(text.slice(start))
  return pieces
}

function isSpace(unit: number): boolean {
  return unit === 32 || (unit >= 9 && unit <= 13) || unit === 0x3000 || unit === 0xa0
}

/** Puts neighbours together as long as they fit. */
function merge(pieces: readonly Piece[], size: number): readonly string[] {
  const merged: string[] = []
  let parts: string[] = []
  let length = 0
  for (const piece of pieces) {
    if (length + piece.length > size && parts.length > 0) {
      merged.push(parts.join(''))
      parts = []
      length = 0
    }
    parts.push(piece.text)
    length += piece.length
  }
  if (parts.length > 0) merged.push(parts.join(''))
  return merged
}

/** Cuts if nothing else does, never inside a code point or what is written as one sign. */
function cutAnywhere({ text, length }: Piece, rules: Rules): readonly Piece[] {
  const { size, measure } = rules
  const total = codePoints(text)
  const step = Math.max(1, Math.floor(total / Math.ceil(length / size)))
  const most = measure === codePoints ? size : step
  const pieces: Piece[] = []
  for (let start = 0; start < text.length; ) {
    const end = cutAfter(text, start, most)
    const part = text.slice(start, end)
    const piece = { text: part, length: measure(part) }
    // A single sign may measure more than a chunk should; it cannot be cut further.
    if (piece.length > size && codePoints(part) > 1 && part.length < text.length) {
      pieces.push(...cutAnywhere(piece, rules))
    } else pieces.push(piece)
    start = end
  }
  return pieces
}

/** Signs that stand with the one before them: marks, joiners, variation selectors, skin tones, tags of flags. */
const joined = /^(?:\p{M}|\u200d|\ufe0f|[\u{1f3fb}-\u{1f3ff}]|[\u{e0020}-\u{e007f}])/u

function cutAfter(text: string, start: number, points: number): number {
  let end = start
  for (let count = 0; count < points && end < text.length; count++) end = afterPoint(text, end)
  if (end >= text.length) return end
  // At most a few steps back: a sign written with more parts than this is cut after all.
  for (let cut = end, steps = 0; cut > start && steps < 8; cut = beforePoint(text, cut), steps++) {
    const isInside = joined.test(text.slice(cut, cut + 2)) || text.charCodeAt(cut - 1) === 0x200d
    if (!isInside && !cutsFlag(text, start, cut)) return cut
  }
  return end
}

/** Whether a place lies between the two letters of a flag: they come in pairs from `start` on. */
function cutsFlag(text: string, start: number, cut: number): boolean {
  let at = cut
  while (at - 2 >= start && isFlagLetter(text, at - 2)) at -= 2
  return isFlagLetter(text, cut) && (cut - at) % 4 === 2
}

function isFlagLetter(text: string, at: number): boolean {
  const point = text.codePointAt(at) ?? 0
  return point >= 0x1f1e6 && point <= 0x1f1ff
}

function afterPoint(text: string, at: number): number {
  return isPair(text, at) ? at + 2 : at + 1
}

function beforePoint(text: string, at: number): number {
  return at >= 2 && isPair(text, at - 2) ? at - 2 : at - 1
}

function isPair(text: string, at: number): boolean {
  const high = text.charCodeAt(at)
  if (high < 0xd800 || high > 0xdbff || at + 1 >= text.length) return false
  const low = text.charCodeAt(at + 1)
  return low >= 0xdc00 && low <= 0xdfff
}

/** How many code points a text has; half of a surrogate pair counts as one. */
export function codePoints(text: string): number {
  let count = text.length
  for (let at = 0; at < text.length - 1; at++) {
    if (isPair(text, at)) {
      count--
      at++
    }
  }
  return count
}

/** The text's parts, each beginning where the pattern matches. */
function cutAt(text: string, boundary: RegExp): readonly string[] {
  const flags = boundary.flags.includes('g') ? boundary.flags : `${boundary.flags}g`
  const cuts = [...text.matchAll(new RegExp(boundary.source, flags))].map(({ index }) => index)
  const starts = [0, ...cuts.filter((cut, place) => cut > 0 && cut !== cuts[place - 1])]
  return starts.map((start, place) => text.slice(start, starts[place + 1]))
}
