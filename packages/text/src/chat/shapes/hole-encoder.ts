import { type Hole, type MarkedSourceText, markedSourceOf, moveHole } from '../../jinja/hidden.ts'
import type { ControlToken, MarkedText, Tokenizer } from '../../tokenizers/tokenizer.ts'
import { shift } from '../ranges.ts'

/** Encodes a text whose holes are filled from these texts. */
export type HoleEncoder = (texts: readonly string[]) => Int32Array

/** Encodes a part of a text; the first one may be encoded in another way than all others. */
export type EncodePart = (part: MarkedText, isFirst: boolean) => MarkedText | Int32Array

/** A text with holes. */
export interface Outline extends MarkedSourceText {
  readonly holes: readonly Hole[]
}

/** A part of the text: the same ids always, or what is encoded each time. */
type Part = Int32Array | ((texts: readonly string[]) => MarkedText)

/**
 * Builds the encoder of a text with holes. What lies between two control tokens is encoded by itself,
 * so only the spans with holes in them are encoded each time; what comes out is what the
 * tokenizer gives for the whole text, in which all that fills holes is foreign. What `encode` leaves as text,
 * the tokenizer encodes.
 */
export function makeHoleEncoder(
  tokenizer: Tokenizer,
  outline: Outline,
  encode: EncodePart = part => part,
): HoleEncoder {
  let parts: readonly Part[] | undefined
  let isFirst = true
  const read = markedSourceOf(outline, outline.holes)
  return texts => {
    // Splitting the text pays only from its second use on.
    if (isFirst) {
      isFirst = false
      const { text, foreign } = read(texts)
      return tokenizer.encode(text, { foreign })
    }
    parts ??= takeApart(tokenizer, outline)
    return tokenizer.encodeParts(
      parts.map((part, index) =>
        typeof part === 'function' ? encode(part(texts), index === 0) : part,
      ),
    )
  }
}

function takeApart(tokenizer: Tokenizer, outline: Outline): readonly Part[] {
  const { text, holes, foreign } = outline
  const parts: Part[] = []
  const cut = (start: number, end: number): MarkedText => ({
    text: text.slice(start, end),
    foreign: shift(foreign, start, end - start),
  })
  const encode = (start: number, end: number): Int32Array => {
    const part = cut(start, end)
    return tokenizer.encode(part.text, part)
  }
  let from = 0
  for (const { start, end } of makeSpans(tokenizer, outline)) {
    if (from < start) parts.push(encode(from, start))
    const inside = holes.filter(({ at }) => start <= at && at <= end)
    parts.push(
      markedSourceOf(
        cut(start, end),
        inside.map(hole => moveHole(hole, -start)),
      ),
    )
    from = end
  }
  if (from < text.length) parts.push(encode(from, text.length))
  return parts
}

/** A stretch of the text, from behind one control token to the next. */
interface OpenSpan {
  readonly start: number
  readonly end: number
}

/** The spans with holes in them. */
function makeSpans(
  { controls }: Tokenizer,
  { text, holes, foreign }: Outline,
): readonly OpenSpan[] {
  const given = controls.filter(control => !control.normalized)
  const spans: OpenSpan[] = []
  let start = 0
  for (let index = 0; index <= holes.length; index++) {
    const from = holes[index - 1]?.at ?? 0
    const to = holes[index]?.at ?? text.length
    const marked = shift(foreign, from, to - from)
    const isOurs = ({ start: first, end: last }: OpenSpan): boolean =>
      marked.every(([start, end]) => last <= start || end <= first)
    const borders = findBorders(text.slice(from, to), given).filter(isOurs)
    const [first, last] = [borders[0], borders.at(-1)]
    if (index > 0 && first) spans.push({ start, end: from + first.start })
    else if (index > 0 && index === holes.length) spans.push({ start, end: to })
    if (last) start = from + last.end
  }
  return spans
}

/**
 * The control strings in a text that are control tokens whatever stands before and behind the text,
 * and beyond which nothing reaches: they take no white space, and no other can overlap them.
 */
function findBorders(text: string, controls: readonly ControlToken[]): readonly OpenSpan[] {
  // Whether a single-word token matches depends on its neighbours, and the places of all others depend on that.
  if (controls.some(({ singleWord }) => singleWord)) return []
  return controls
    .filter(isPlain)
    .flatMap(({ content }) => placesOf(text, content))
    .filter(place => controls.every(({ content }) => isApart(text, place, content)))
    .sort((one, other) => one.start - other.start)
}

function isPlain({ content, lstrip, rstrip }: ControlToken): boolean {
  // Half a surrogate pair could meet its other half, and a neighbour could take white space.
  return !lstrip && !rstrip && !/^[\p{White_Space}\p{Surrogate}]|\p{Surrogate}$/u.test(content)
}

function placesOf(text: string, content: string): readonly OpenSpan[] {
  const places: OpenSpan[] = []
  for (let start = text.indexOf(content); start >= 0; start = text.indexOf(content, start + 1)) {
    places.push({ start, end: start + content.length })
  }
  return places
}

/** Whether a string cannot overlap a place of a text, if anything may stand around the text. */
function isApart(text: string, { start, end }: OpenSpan, string: string): boolean {
  for (let at = start - string.length + 1; at < end; at++) {
    const isItself = at === start && string.length === end - start
    if (!isItself && fitsAt(text, at, string)) return false
  }
  return true
}

/** Whether a string could stand at a place that may reach beyond the known text. */
function fitsAt(text: string, at: number, string: string): boolean {
  const last = Math.min(string.length, text.length - at)
  for (let index = Math.max(0, -at); index < last; index++) {
    if (string.charCodeAt(index) !== text.charCodeAt(at + index)) return false
  }
  return true
}
