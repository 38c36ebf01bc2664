import { formatFields } from '../format.ts'
import { splitLines, WHITESPACE } from '../lines.ts'
import { codePoints, iterate, nameOf } from '../operators.ts'
import {
  type Named,
  ProgramBytes,
  PythonTuple,
  typeError,
  unwrap,
  type Value,
  valueError,
} from '../values.ts'
import { argument, defineMethods } from './define.ts'

const textOf = (value: Value | undefined): string => unwrap(value as Value) as string

/** An argument that must be a text; `explain` gives Python's error for another type. */
function requireText(value: Value | undefined, explain: (type: string) => string): string {
  const text = unwrap(value as Value)
  if (typeof text === 'string') return text
  throw typeError(explain(nameOf(value as Value)))
}

const BLANK = new RegExp(`[${WHITESPACE}]+`, 'u')
const EDGES = {
  start: new RegExp(`^[${WHITESPACE}]+`, 'u'),
  end: new RegExp(`[${WHITESPACE}]+$`, 'u'),
}

function strip(given: readonly Value[], side: 'start' | 'end' | 'both'): string {
  const text = textOf(given[0])
  const set = given[1] === undefined || given[1] === null ? undefined : new Set(textOf(given[1]))
  if (set === undefined) {
    const from = side === 'end' ? text : text.replace(EDGES.start, '')
    return side === 'start' ? from : from.replace(EDGES.end, '')
  }
  const characters = [...text]
  let from = 0
  let to = characters.length
  if (side !== 'end') while (from < to && set.has(characters[from] as string)) from++
  if (side !== 'start') while (to > from && set.has(characters[to - 1] as string)) to--
  return characters.slice(from, to).join('')
}

function split(given: readonly Value[], named: Named): Value {
  const text = textOf(given[0])
  const separator = argument(given, named, 1, 'sep') ?? null
  const limit = Number(argument(given, named, 2, 'maxsplit') ?? -1)
  if (separator === null) return splitOnSpace(text, limit)
  const between = textOf(separator)
  if (between === '') throw valueError('empty separator')
  const parts = text.split(between)
  if (limit < 0 || parts.length <= limit + 1) return parts
  return [...parts.slice(0, limit), parts.slice(limit).join(between)]
}

function splitOnSpace(text: string, limit: number): Value {
  const parts: string[] = []
  let rest = text.replace(EDGES.start, '')
  while (rest !== '') {
    const blank = limit >= 0 && parts.length >= limit ? null : BLANK.exec(rest)
    parts.push(blank ? rest.slice(0, blank.index) : rest.replace(EDGES.end, ''))
    rest = blank ? rest.slice(blank.index + blank[0].length) : ''
  }
  return parts
}

function splitFromRight(given: readonly Value[], named: Named): Value {
  const between = textOf(argument(given, named, 1, 'sep'))
  const limit = Number(argument(given, named, 2, 'maxsplit') ?? -1)
  const parts = textOf(given[0]).split(between)
  if (limit < 0 || parts.length <= limit + 1) return parts
  const cut = parts.length - limit
  return [parts.slice(0, cut).join(between), ...parts.slice(cut)]
}

function join(given: readonly Value[]): string {
  const parts: string[] = []
  for (const item of iterate(given[1] as Value)) {
    const text = unwrap(item)
    if (typeof text !== 'string') {
      throw typeError(`sequence item ${parts.length}: expected str instance, ${nameOf(item)} found`)
    }
    parts.push(text)
  }
  return parts.join(textOf(given[0]))
}

function replace(given: readonly Value[]): string {
  const [text, from, to] = [textOf(given[0]), given[1], given[2]]
  const old = requireText(from, type => `replace() argument 1 must be str, not ${type}`)
  const other = requireText(to, type => `replace() argument 2 must be str, not ${type}`)
  const limit = given[3] === undefined ? -1 : Number(given[3])
  if (limit < 0) return text.replaceAll(old, () => other)
  let replaced = text
  let at = 0
  for (let count = 0; count < limit; count++) {
    const found = replaced.indexOf(old, at)
    if (found < 0) break
    replaced = replaced.slice(0, found) + other + replaced.slice(found + old.length)
    at = found + other.length
  }
  return replaced
}

function hasEdge(given: readonly Value[], edge: 'startsWith' | 'endsWith'): boolean {
  const text = textOf(given[0])
  const wanted = unwrap(given[1] as Value)
  if (typeof wanted === 'string') return text[edge](wanted)
  if (wanted instanceof PythonTuple) return wanted.items.some(item => text[edge](textOf(item)))
  throw typeError(
    `${edge.toLowerCase()} first arg must be str or a tuple of str, not ${nameOf(wanted)}`,
  )
}

/** Every first letter of a word a capital, all others small. */
function title(text: string): string {
  return text.replace(
    /(\p{L})(\p{L}*)/gu,
    (_, first: string, rest: string) => first.toUpperCase() + rest.toLowerCase(),
  )
}

const pad = (given: readonly Value[]): { text: string; fill: string } => {
  const text = textOf(given[0])
  const missing = Math.max(0, Number(given[1]) - codePoints(text))
  return { text, fill: (given[2] === undefined ? ' ' : textOf(given[2])).repeat(missing) }
}

function zeroFill(given: readonly Value[]): string {
  const { text, fill } = pad([...given.slice(0, 2), '0'])
  const sign = /^[-+]/.exec(text)?.[0] ?? ''
  return sign + fill + text.slice(sign.length)
}

const everyCharacter = (text: string, pattern: RegExp): boolean =>
  text !== '' && [...text].every(one => pattern.test(one))

/** The methods of texts. */
export const textMethods = defineMethods({
  lower: ([text]) => textOf(text).toLowerCase(),
  upper: ([text]) => textOf(text).toUpperCase(),
  title: ([text]) => title(textOf(text)),
  capitalize: ([text]) =>
    textOf(text).slice(0, 1).toUpperCase() + textOf(text).slice(1).toLowerCase(),
  strip: given => strip(given, 'both'),
  lstrip: given => strip(given, 'start'),
  rstrip: given => strip(given, 'end'),
  split,
  rsplit: splitFromRight,
  splitlines: ([text]) => splitLines(textOf(text)),
  join,
  replace,
  startswith: given => hasEdge(given, 'startsWith'),
  endswith: given => hasEdge(given, 'endsWith'),
  count: ([text, part]) => {
    const wanted = requireText(part, type => `must be str, not ${type}`)
    return textOf(text).split(wanted).length - 1
  },
  find: ([text, part]) => {
    const at = textOf(text).indexOf(textOf(part))
    return at < 0 ? -1 : codePoints(textOf(text).slice(0, at))
  },
  isdigit: ([text]) =>
    everyCharacter(textOf(text), /[\p{Nd}\u00b2\u00b3\u00b9\u2070\u2074-\u2079\u2080-\u2089]/u),
  isalpha: ([text]) => everyCharacter(textOf(text), /\p{L}/u),
  isalnum: ([text]) => everyCharacter(textOf(text), /[\p{L}\p{N}]/u),
  isupper: ([text]) => /\p{Lu}/u.test(textOf(text)) && !/\p{Ll}/u.test(textOf(text)),
  zfill: zeroFill,
  ljust: given => pad(given).text + pad(given).fill,
  rjust: given => pad(given).fill + pad(given).text,
  format: (given, named) => formatFields(textOf(given[0]), given.slice(1), named),
  encode: ([text]) => new ProgramBytes(Buffer.from(textOf(text), 'utf8')),
})
