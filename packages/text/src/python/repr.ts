import { PythonError } from './error.ts'
import type { PythonDict, PythonValue } from './value.ts'
import {
  formatInt,
  MAXIMUM_DEPTH,
  PythonFloat,
  PythonSet,
  PythonText,
  PythonTuple,
} from './value.ts'

/** Renders what is not a plain Python value, or gives `undefined` to refuse it. */
export interface ReprOptions {
  readonly other?: (value: unknown) => string | undefined
}

/** Python's `repr`. */
export function repr(value: PythonValue, options: ReprOptions = {}): string {
  return write(value, options.other, 0)
}

/** Python's `str`: strings as they are, everything else by its `repr`. */
export function str(value: PythonValue, options: ReprOptions = {}): string {
  return typeof value === 'string' ? value : write(value, options.other, 0)
}

function write(value: PythonValue, other: ReprOptions['other'], depth: number): string {
  switch (typeof value) {
    case 'string':
      return reprString(value)
    case 'number':
      return formatNumber(value)
    case 'bigint':
      return formatInt(value)
    case 'boolean':
      return value ? 'True' : 'False'
    default:
      return value === null ? 'None' : writeObject(value, other, depth)
  }
}

function formatNumber(value: number): string {
  if (Number.isSafeInteger(value)) return String(value + 0)
  return Number.isInteger(value) ? BigInt(value).toString() : formatFloat(value)
}

type Compound = Exclude<PythonValue, null | boolean | number | bigint | string>

function writeObject(value: Compound, other: ReprOptions['other'], depth: number): string {
  if (depth > MAXIMUM_DEPTH) {
    throw new PythonError('RecursionError', 'maximum recursion depth exceeded in repr')
  }
  if (value instanceof Map) return `{${writePairs(value, other, depth + 1)}}`
  if (Array.isArray(value)) return `[${writeItems(value, other, depth + 1)}]`
  if (value instanceof PythonFloat) return formatFloat(value.value)
  if (value instanceof PythonTuple) {
    const end = value.items.length === 1 ? ',)' : ')'
    return `(${writeItems(value.items, other, depth + 1)}${end}`
  }
  if (value instanceof PythonSet) {
    return value.items.length === 0 ? 'set()' : `{${writeItems(value.items, other, depth + 1)}}`
  }
  return writeOther(value, other)
}

function writeItems(
  items: readonly PythonValue[],
  other: ReprOptions['other'],
  depth: number,
): string {
  let text = ''
  for (const item of items) text += (text === '' ? '' : ', ') + write(item, other, depth)
  return text
}

function writePairs(dict: PythonDict, other: ReprOptions['other'], depth: number): string {
  let text = ''
  for (const [key, item] of dict) {
    if (text !== '') text += ', '
    text += `${write(key, other, depth)}: ${write(item, other, depth)}`
  }
  return text
}

function writeOther(value: unknown, other: ReprOptions['other']): string {
  if (value instanceof PythonText) {
    return value.markup ? `Markup(${reprString(value.text)})` : reprString(value.text)
  }
  const rich = other?.(value)
  if (rich !== undefined) return rich
  throw new PythonError('TypeError', `No repr for ${Object.prototype.toString.call(value)}.`)
}

/** The `repr` of a float: the shortest digits that read back, an exponent below 1e-4 and from 1e16. */
export function formatFloat(value: number): string {
  if (Number.isNaN(value)) return 'nan'
  if (!Number.isFinite(value)) return value < 0 ? '-inf' : 'inf'
  if (value === 0) return Object.is(value, -0) ? '-0.0' : '0.0'
  const magnitude = Math.abs(value)
  if (magnitude >= 1e-4 && magnitude < 1e16) {
    // JavaScript writes no exponent between 1e-6 and 1e21, so the digits are already in place
    const text = String(value)
    return Number.isInteger(value) ? `${text}.0` : text
  }
  const [digits = '', exponent = ''] = value.toExponential().split('e')
  const sign = exponent[0] === '-' ? '-' : '+'
  return `${digits}e${sign}${exponent.slice(1).padStart(2, '0')}`
}

const NOT_PLAIN = /[^\x20-\x7e]|['"\\]/
// everything Python calls unprintable: separators other than the space, and all of category C
const TO_ESCAPE = /[\p{C}\p{Z}\\'"]/gu
const SHORT_ESCAPES = new Map([
  ['\n', '\\n'],
  ['\r', '\\r'],
  ['\t', '\\t'],
  ['\\', '\\\\'],
])

/** The `repr` of a string: single quotes unless only those occur inside, the unprintable escaped. */
export function reprString(text: string): string {
  if (!NOT_PLAIN.test(text)) return `'${text}'`
  const quote = text.includes("'") && !text.includes('"') ? '"' : "'"
  const body = text.replace(TO_ESCAPE, character => {
    if (character === ' ') return character
    if (character === "'" || character === '"') {
      return character === quote ? `\\${character}` : character
    }
    return SHORT_ESCAPES.get(character) ?? escapeCodePoint(character.codePointAt(0) as number)
  })
  return quote + body + quote
}

function escapeCodePoint(code: number): string {
  const digits = code.toString(16)
  if (code <= 0xff) return `\\x${digits.padStart(2, '0')}`
  return code <= 0xffff ? `\\u${digits.padStart(4, '0')}` : `\\U${digits.padStart(8, '0')}`
}

/** A `repr` as Python's `ascii` writes it: every character beyond ASCII is escaped. */
export const encodeAsciiRepr = (text: string): string =>
  text.replace(/[^\p{ASCII}]/gu, character => escapeCodePoint(character.codePointAt(0) as number))
