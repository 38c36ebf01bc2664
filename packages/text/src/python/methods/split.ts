import { asNumber } from '../compare.ts'
import { type Runtime, spend } from '../runtime.ts'
import type { Method, MethodBody } from '../signature.ts'
import { method, signature } from '../signature.ts'
import { isLineEnd, isSpace } from '../text/character.ts'
import { likeText, plain, sliceText } from '../text/text.ts'
import { PythonFloat, PythonTuple, type Text } from '../value.ts'
import { requireInt, requireText, typeError, valueError } from './arguments.ts'

type Ranges = [number, number][]

/** Where the words of a text are, at most `limit` of them cut off from the left. */
function splitSpaces(text: string, limit: number): Ranges {
  const ranges: Ranges = []
  let offset = 0
  while (true) {
    while (offset < text.length && isSpace(text.charCodeAt(offset))) offset++
    if (offset >= text.length) return ranges
    if (ranges.length === limit) return [...ranges, [offset, text.length]]
    const start = offset
    while (offset < text.length && !isSpace(text.charCodeAt(offset))) offset++
    ranges.push([start, offset])
  }
}

function rsplitSpaces(text: string, limit: number): Ranges {
  const ranges: Ranges = []
  let offset = text.length
  while (true) {
    while (offset > 0 && isSpace(text.charCodeAt(offset - 1))) offset--
    if (offset <= 0) break
    const end = offset
    if (ranges.length === limit) {
      ranges.push([0, end])
      break
    }
    while (offset > 0 && !isSpace(text.charCodeAt(offset - 1))) offset--
    ranges.push([offset, end])
  }
  return ranges.reverse()
}

function splitAt(text: string, separator: string, limit: number): Ranges {
  const ranges: Ranges = []
  let start = 0
  while (ranges.length < limit) {
    const found = text.indexOf(separator, start)
    if (found < 0) break
    ranges.push([start, found])
    start = found + separator.length
  }
  ranges.push([start, text.length])
  return ranges
}

function rsplitAt(text: string, separator: string, limit: number): Ranges {
  const ranges: Ranges = []
  let end = text.length
  while (ranges.length < limit && end >= separator.length) {
    const found = text.lastIndexOf(separator, end - separator.length)
    if (found < 0) break
    ranges.push([found + separator.length, end])
    end = found
  }
  ranges.push([0, end])
  return ranges.reverse()
}

/** `split` and `rsplit`, which differ in the side they count from. */
const splitBody =
  (onSpaces: typeof splitSpaces, onSeparator: typeof splitAt): MethodBody<Text> =>
  (self, [separator, maximum], run) => {
    const text = plain(self)
    const count = requireInt(maximum, -1)
    const limit = count < 0 ? Number.POSITIVE_INFINITY : count
    if (separator === undefined || separator === null) {
      return cut(run, self, onSpaces(text, limit))
    }
    const wanted = requireText(separator, 'separator')
    if (wanted === '') valueError('empty separator')
    if (typeof self !== 'string' || count >= 0)
      return cut(run, self, onSeparator(text, wanted, limit))
    const parts = self.split(wanted)
    spend(run, 8 * parts.length)
    return parts
  }

function cut(run: Runtime, text: Text, ranges: Ranges): Text[] {
  spend(run, 16 * ranges.length)
  return ranges.map(([start, end]) => sliceText(text, start, end))
}

const splitlines: MethodBody<Text> = (self, [keep = false], run) => {
  const ends = asNumber(keep)
  if (ends === undefined || ends instanceof PythonFloat) {
    return typeError('splitlines() wants an int to say whether to keep the ends of lines')
  }
  return cut(run, self, lineRanges(plain(self), ends !== 0))
}

/** Where the lines of a text are, with or without what ends them. */
export function lineRanges(text: string, keepEnds: boolean): Ranges {
  const ranges: Ranges = []
  let start = 0
  for (let offset = 0; offset < text.length; offset++) {
    if (!isLineEnd(text.charCodeAt(offset))) continue
    const end = offset
    if (text[offset] === '\r' && text[offset + 1] === '\n') offset++
    ranges.push([start, keepEnds ? offset + 1 : end])
    start = offset + 1
  }
  if (start < text.length) ranges.push([start, text.length])
  return ranges
}

const partitionBody =
  (last: boolean): MethodBody<Text> =>
  (self, [separator]) => {
    const text = plain(self)
    const wanted = requireText(separator, 'separator')
    if (wanted === '') valueError('empty separator')
    const found = last ? text.lastIndexOf(wanted) : text.indexOf(wanted)
    const nothing = likeText(self, '')
    if (found < 0)
      return new PythonTuple(last ? [nothing, nothing, self] : [self, nothing, nothing])
    const end = found + wanted.length
    return new PythonTuple([
      sliceText(self, 0, found),
      sliceText(self, found, end),
      sliceText(self, end, text.length),
    ])
  }

/** The methods of `str` that cut it into parts. */
export const SPLIT_METHODS: readonly (readonly [string, Method])[] = [
  ['split', method(signature('split', 'sep? maxsplit?'), splitBody(splitSpaces, splitAt))],
  ['rsplit', method(signature('rsplit', 'sep? maxsplit?'), splitBody(rsplitSpaces, rsplitAt))],
  ['splitlines', method(signature('splitlines', 'keepends?'), splitlines)],
  ['partition', method(signature('partition', 'sep', false), partitionBody(false))],
  ['rpartition', method(signature('rpartition', 'sep', false), partitionBody(true))],
]
