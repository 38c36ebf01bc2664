import { PythonError } from '../../python/error.ts'
import { formatPercent } from '../../python/format/percent.ts'
import { limitText } from '../../python/format/specification.ts'
import { dumps } from '../../python/json.ts'
import { requireInt, requireText } from '../../python/methods/arguments.ts'
import { lineRanges } from '../../python/methods/split.ts'
import { center, replaceText, stripText } from '../../python/methods/text.ts'
import { capitalize } from '../../python/text/character.ts'
import {
  countCharacters,
  joinTexts,
  mapText,
  plain,
  sizeOf,
  sliceText,
} from '../../python/text/text.ts'
import type { PythonValue } from '../../python/value.ts'
import { PythonTuple } from '../../python/value.ts'
import { holdsForeign } from '../foreign.ts'
import { requireLength, walk } from '../iteration.ts'
import { add, isTrue } from '../operations.ts'
import type { Run } from '../run.ts'
import { spend, spendText } from '../run.ts'
import { printable, softText } from '../show.ts'
import type { Method, MethodBody } from '../signature.ts'
import { method, signature } from '../signature.ts'
import { changeHidden, foreignText, fromMarkup, isMarkup, markLike, toMarkup } from '../text.ts'
import type { Input, Text, Value } from '../value.ts'
import { isText, sequenceItems, typeError, typeOf, Undefined } from '../value.ts'
import { makeGetter } from './attribute.ts'
import { prettyPrint } from './pretty.ts'
import { wrapText } from './wrap.ts'

const changed =
  (change: (text: string) => string): MethodBody<Value> =>
  (value, _, run) => {
    const text = softText(run, value)
    spendText(run, plain(text).length)
    return mapText(text, change)
  }

/** An escaped unit becomes six, and quotes are added. */
const JSON_GROWTH = 8

/** `tojson` of transformers: `json.dumps` without the HTML escapes of Jinja's own. */
const tojson: MethodBody<Value> = (value, values, run) => {
  const [ensureAscii = false, indent = null, separators = null, sortKeys = false] = values
  const options = {
    ensureAscii: isTrue(ensureAscii),
    indent: toIndent(run, indent),
    separators: toSeparators(separators),
    sortKeys: isTrue(sortKeys),
    maximum: run.limits.characters,
  }
  const later = isText(value) && changeHidden(value, each => dumps(each, options), JSON_GROWTH)
  if (later) return later
  // However large the value, the text is no longer than `maximum`: the work is counted by it.
  const text = dumps(value as PythonValue, options)
  spendText(run, text.length)
  spend(run, text.length)
  return run.variables.foreign && holdsForeign(value) ? foreignText(text) : text
}

function toIndent(run: Run, indent: Value): string | null {
  if (indent === null) return null
  return isText(indent) ? plain(indent) : spaces(run, requireInt(indent, 0))
}

function toSeparators(separators: Value): readonly [string, string] | null {
  if (separators === null) return null
  const [item, pair, ...others] = sequenceItems(separators) ?? []
  if (!isText(item) || !isText(pair) || others.length > 0) {
    return typeError('separators must be two strings')
  }
  return [plain(item), plain(pair)]
}

const trim: MethodBody<Value> = (value, [chars], run) =>
  stripText(softText(run, value), chars, 'both')

const join: MethodBody<Value> = (value, [delimiter = '', attribute = null], run) => {
  const between = printable(run, delimiter)
  const get = attribute === null ? undefined : makeGetter(attribute)
  const parts: Text[] = []
  for (const item of walk(run, value)) {
    if (parts.length > 0) parts.push(between)
    parts.push(printable(run, get ? get(item) : item))
  }
  const joined = joinTexts(parts)
  spendText(run, sizeOf(joined) + parts.length)
  return joined
}

const replace: MethodBody<Value> = (value, [old, replacement, count = null], run) =>
  replaceText(run, printable(run, value), [
    plain(printable(run, old as Value)),
    printable(run, replacement as Value),
    count === null ? -1 : requireInt(count, -1),
  ])

function spaces(run: Run, count: number): string {
  spendText(run, count)
  return ' '.repeat(Math.max(0, count))
}

const indent: MethodBody<Value> = (value, [width = 4, first = false, blank = false], run) => {
  if (!isText(value)) {
    if (value instanceof Undefined) value.raise()
    typeError(`unsupported operand type(s) for +=: '${typeOf(value)}' and 'str'`)
  }
  const space = isText(width) ? width : spaces(run, requireInt(width, 4))
  const text = add(run, value, '\n') as Text
  const lines = lineRanges(plain(text), false).map(([start, end]) => sliceText(text, start, end))
  const parts: Text[] = isTrue(first) ? [space] : []
  for (const [index, line] of lines.entries()) {
    if (index > 0) parts.push('\n')
    if (index > 0 && (isTrue(blank) || plain(line) !== '')) parts.push(space)
    parts.push(line)
  }
  const joined = joinTexts(parts)
  spendText(run, plain(joined).length)
  return isMarkup(value) ? toMarkup(joined) : joined
}

const truncate: MethodBody<Value> = (value, values, run) => {
  const [length, killwords = false, end = '...', leeway] = values
  const limit = requireInt(length, 255)
  const ending = isText(end) ? end : typeError('end must be str')
  const endLength = countCharacters(plain(ending))
  const slack = requireInt(leeway, 5)
  if (limit < endLength || slack < 0) {
    throw new PythonError('AssertionError', `expected length >= ${endLength}, got ${limit}`)
  }
  if (requireLength(value) <= limit + slack) return value
  if (!isText(value)) return typeError(`object of type '${typeOf(value)}' cannot be truncated`)
  const cut = limitText(value, limit - endLength)
  const space = isTrue(killwords) ? -1 : plain(cut).lastIndexOf(' ')
  return add(run, space < 0 ? cut : sliceText(cut, 0, space), ending)
}

const WORD_START = /([-\s({[<]+)/

const titleWords = changed(text =>
  text
    .split(WORD_START)
    .map(part => {
      const [first = ''] = part
      return first.toUpperCase() + part.slice(first.length).toLowerCase()
    })
    .join(''),
)

const title: MethodBody<Value> = (value, values, run) =>
  fromMarkup(titleWords(value, values, run) as Text)

const wordcount: MethodBody<Value> = (value, _, run) =>
  plain(softText(run, value)).match(/[\p{L}\p{N}_]+/gu)?.length ?? 0

const wordwrap: MethodBody<Value> = (value, values, run) => {
  const [width, breakLong = true, wrapstring = '\n', breakHyphens = true] = values
  const text = softText(run, value)
  const wrapped = wrapText(run, plain(text), {
    width: requireInt(width, 79),
    breakLongWords: isTrue(breakLong),
    breakOnHyphens: isTrue(breakHyphens),
    lineBreak: wrapstring === null ? '\n' : requireText(wrapstring, 'wrapstring'),
  })
  spendText(run, wrapped.length)
  return markLike(wrapped, text)
}

function format(run: Run, value: Value, { positional, named }: Input): Value {
  if (positional.length > 0 && named) {
    throw new PythonError(
      'FilterArgumentError',
      "can't handle positional and keyword arguments at the same time",
    )
  }
  const text = softText(run, value)
  return formatPercent(run, text, named ? new Map(named) : new PythonTuple(positional))
}

const centered: MethodBody<Value> = (value, [width], run) =>
  center(run, softText(run, value), requireInt(width, 80))

const text: MethodBody<Value> = (value, _, run) => softText(run, value)

const pprint: MethodBody<Value> = (value, _, run) => {
  const printed = prettyPrint(run, value)
  spendText(run, printed.length)
  return markLike(printed, printable(run, value))
}

const table = (
  rows: readonly (readonly [string, string, MethodBody<Value>])[],
): readonly (readonly [string, Method])[] =>
  rows.map(([name, words, body]) => [name, method(signature(name, words), body)])

/** The filters on text. */
export const TEXT_FILTERS: readonly (readonly [string, Method])[] = [
  ...table([
    ['tojson', 'ensure_ascii? indent? separators? sort_keys?', tojson],
    ['trim', 'chars?', trim],
    ['upper', '', changed(each => each.toUpperCase())],
    ['lower', '', changed(each => each.toLowerCase())],
    ['capitalize', '', changed(capitalize)],
    ['title', '', title],
    ['string', '', text],
    ['join', 'd? attribute?', join],
    ['replace', 'old new count?', replace],
    ['indent', 'width? first? blank?', indent],
    ['truncate', 'length? killwords? end? leeway?', truncate],
    ['center', 'width?', centered],
    ['wordcount', '', wordcount],
    ['wordwrap', 'width? break_long_words? wrapstring? break_on_hyphens?', wordwrap],
    ['pprint', '', pprint],
  ]),
  ['format', { changes: false, call: format }],
]
