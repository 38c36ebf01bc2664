import { type Hole, moveHole, sourceOf, type TextSource } from '../../jinja/hidden.ts'
import type { ControlToken, Tokenizer } from '../../tokenizers/tokenizer.ts'

/** Encodes a text whose holes are filled from these texts. */
export type HoleEncoder = (texts: readonly string[]) => Int32Array

/** A text with holes. */
export interface Outline {
  readonly text: string
  readonly holes: readonly Hole[]
}

/** A part of the text: the same ids always, or what is encoded each time. */
type Part = Int32Array | TextSource

/**
 * Builds the encoder of a text with holes. What lies between two control tokens is encoded by itself,
 * so only the spans with holes in them are encoded each time; what comes out is what the
 * tokenizer gives for the whole text, of which no character is foreign.
 */
export function openHoleEncoder(tokenizer: Tokenizer, outline: Outline): HoleEncoder {
  let parts: readonly Part[] | undefined
  let isFirst = true
  const read = sourceOf(outline.text, outline.holes)
  return texts => {
    // Taking the text apart pays only for a text that comes again.
    if (isFirst) {
      isFirst = false
      return tokenizer.encode(read(texts))
    }
    parts ??= takeApart(tokenizer, outline)
    return tokenizer.encodeParts(
      parts.map(part => (typeof part === 'function' ? part(texts) : part)),
    )
  }
}

function takeApart(tokenizer: Tokenizer, { text, holes }: Outline): readonly Part[] {
  const parts: Part[] = []
  let from = 0
  for (const { start, end } of openSpans(tokenizer, { text, holes })) {
    if (from < start) parts.push(tokenizer.encode(text.slice(from, start)))
    const inside = holes.filter(({ at }) => start <= at && at <= end)
    parts.push(
      sourceOf(
        text.slice(start, end),
        inside.map(hole => moveHole(hole, -start)),
      ),
    )
    from = end
  }
  if (from < text.length) parts.push(tokenizer.encode(text.slice(from)))
  return parts
}

/** A stretch of the text, from behind one control token to the next. */
interface OpenSpan {
  readonly start: number
  readonly end: number
}

/** The spans with holes in them. */
function openSpans({ controls }: Tokenizer, { text, holes }: Outline): readonly OpenSpan[] {
  const given = controls.filter(control => !control.normalized)
  const spans: OpenSpan[] = []
  let start = 0
  for (let index = 0; index <= holes.length; index++) {
    const from = holes[index - 1]?.at ?? 0
    const to = holes[index]?.at ?? text.length
    const borders = findBorders(text.slice(from, to), given)
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
  // Whether such a token is one depends on its neighbours, and with it where all others begin.
  if (controls.some(({ singleWord }) => singleWord)) return []
  return controls
    .filter(isPlain)
    .flatMap(({ content }) => placesOf(text, content))
    .filter(place => controls.every(({ content }) => isApart(text, place, content)))
    .sort((one, other) => one.start - other.start)
}

function isPlain({ content, lstrip, rstrip }: ControlToken): boolean {
  // A half of a character could meet its other half, and white space be taken by its neighbour.
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

/** Whether a string could stand at a place, of which only what lies in the text is known. */
function fitsAt(text: string, at: number, string: string): boolean {
  const last = Math.min(string.length, text.length - at)
  for (let index = Math.max(0, -at); index < last; index++) {
    if (string.charCodeAt(index) !== text.charCodeAt(at + index)) return false
  }
  return true
}
