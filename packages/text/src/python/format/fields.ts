import { PythonError } from '../error.ts'
import { typeError, valueError } from '../methods/arguments.ts'
import { encodeAsciiRepr } from '../repr.ts'
import type { Runtime } from '../runtime.ts'
import { spendText } from '../runtime.ts'
import type { Input, Method } from '../signature.ts'
import { admit, joinTexts, likeText, plain, sliceText } from '../text/text.ts'
import { PythonText, type Text, type Value } from '../value.ts'
import { formatValue } from './specification.ts'

interface Formatter {
  readonly run: Runtime
  readonly input: Input
  readonly format: Text
  /** The next automatic number, or `manual` once a number was written out. */
  next: number | 'manual'
}

/** Python's `str.format`. */
function formatText(run: Runtime, format: Text, input: Input): Text {
  const formatter: Formatter = { run, input, format, next: 0 }
  const text = expand(formatter, format, 2)
  spendText(run, plain(text).length)
  return likeText(format, text)
}

function expand(formatter: Formatter, format: Text, depth: number): Text {
  if (depth < 0) valueError('Max string recursion exceeded')
  const source = plain(format)
  const parts: Text[] = []
  let start = 0
  for (let offset = 0; offset < source.length; offset++) {
    const character = source[offset]
    if (character !== '{' && character !== '}') continue
    parts.push(sliceText(format, start, offset))
    if (source[offset + 1] === character) {
      parts.push(character)
      start = ++offset + 1
      continue
    }
    if (character === '}') valueError("Single '}' encountered in format string")
    const end = fieldEnd(source, offset)
    parts.push(formatField(formatter, sliceText(format, offset + 1, end), depth))
    offset = end
    start = end + 1
  }
  parts.push(sliceText(format, start, source.length))
  return joinTexts(parts)
}

function fieldEnd(source: string, open: number): number {
  let depth = 0
  for (let offset = open; offset < source.length; offset++) {
    if (source[offset] === '{') depth++
    else if (source[offset] === '}' && --depth === 0) return offset
  }
  return valueError(
    open === source.length - 1
      ? "Single '{' encountered in format string"
      : "expected '}' before end of string",
  )
}

const FIELD = /^((?:[^![:\]]|\[[^\]]*\])*)(?:!([\s\S]))?(?::([\s\S]*))?$/

function formatField(formatter: Formatter, field: Text, depth: number): Text {
  const match = FIELD.exec(plain(field))
  if (!match) valueError(`The replacement field '${plain(field)}' cannot be read`)
  const [, name = '', conversion, specification = ''] = match
  const value = convert(formatter.run, findField(formatter, name), conversion)
  const expanded = plain(expand(formatter, specification, depth - 1))
  const { run, format } = formatter
  // Markup among the values of a Markup is taken as it is
  const own = value instanceof PythonText && value.markup && typeof format !== 'string'
  return admit(format, own ? value : formatValue(run, value, expanded))
}

function convert(run: Runtime, value: Value, conversion: string | undefined): Value {
  if (conversion === undefined) return value
  if (conversion === 's') return run.language.str(run, value)
  if (conversion === 'r') return run.language.repr(run, value)
  if (conversion === 'a') return encodeAsciiRepr(plain(run.language.repr(run, value)))
  return valueError(`Unknown conversion specifier '${conversion}'`)
}

const STEP = /\.([^.[]+)|\[([^\]]+)\]/y

function findField(formatter: Formatter, name: string): Value {
  const first = /^[^.[]*/.exec(name)?.[0] ?? ''
  let value = firstValue(formatter, first)
  let offset = first.length
  while (offset < name.length) {
    STEP.lastIndex = offset
    const match = STEP.exec(name)
    if (!match) valueError('Empty attribute in format string')
    const [, attribute, key = ''] = match
    value =
      attribute === undefined
        ? formatter.run.language.item(value, /^[0-9]+$/.test(key) ? Number(key) : key)
        : formatter.run.language.attribute(value, attribute)
    offset = STEP.lastIndex
  }
  return value
}

function firstValue(formatter: Formatter, first: string): Value {
  const { positional, named } = formatter.input
  if (first !== '' && !/^[0-9]+$/.test(first)) {
    const value = named?.get(first)
    if (value === undefined) throw new PythonError('KeyError', `'${first}'`)
    return value
  }
  const index = first === '' ? nextNumber(formatter) : Number(first)
  if (first !== '') {
    if (typeof formatter.next === 'number' && formatter.next > 0) {
      valueError('cannot switch from automatic field numbering to manual field specification')
    }
    formatter.next = 'manual'
  }
  const value = positional[index]
  if (value === undefined) {
    throw new PythonError(
      'IndexError',
      `Replacement index ${index} out of range for positional args tuple`,
    )
  }
  return value
}

function nextNumber(formatter: Formatter): number {
  if (formatter.next === 'manual') {
    return valueError('cannot switch from manual field specification to automatic field numbering')
  }
  return formatter.next++
}

function formatMap(run: Runtime, format: Text, input: Input): Text {
  const [mapping] = input.positional
  if (input.positional.length !== 1 || !(mapping instanceof Map)) {
    return typeError('format_map() takes exactly one argument, a mapping')
  }
  const named = new Map<string, Value>()
  for (const [key, value] of mapping) if (typeof key === 'string') named.set(key, value)
  return formatText(run, format, { positional: [], named })
}

/** The methods of `str` that fill in a format. */
export const FORMAT_METHODS: readonly (readonly [string, Method])[] = [
  ['format', { changes: false, call: (run, self, input) => formatText(run, self as Text, input) }],
  [
    'format_map',
    { changes: false, call: (run, self, input) => formatMap(run, self as Text, input) },
  ],
]
