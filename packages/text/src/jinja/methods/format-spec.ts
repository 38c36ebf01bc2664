import { asNumber } from '../../python/compare.ts'
import { toDouble } from '../../python/number.ts'
import { PythonFloat } from '../../python/value.ts'
import type { Run } from '../run.ts'
import { spendText } from '../run.ts'
import { printable } from '../show.ts'
import { characterOffsets, countCharacters, joinTexts, plain, sliceText } from '../text.ts'
import type { Text, Value } from '../value.ts'
import { isText, typeError, typeOf, valueError } from '../value.ts'
import type { NumberFormat } from './format-number.ts'
import { floatDigits, intDigits, splitPrefix } from './format-number.ts'

interface Specification extends NumberFormat {
  readonly fill: string
  readonly align: string
  readonly sign: string
  /** Whether a zero that rounding made negative loses its sign. */
  readonly coerces: boolean
  readonly zero: boolean
  readonly width: number
  readonly grouping: string
}

const SPECIFICATION =
  /^(?:(.)?([<>=^]))?([-+ ])?(z)?(#)?(0)?([0-9]+)?([,_])?(?:\.([0-9]+))?([a-zA-Z%])?$/su

function parseSpecification(text: string, value: Value): Specification {
  const match = SPECIFICATION.exec(text)
  if (!match) valueError(`Invalid format specifier '${text}' for object of type '${typeOf(value)}'`)
  const [, fill, align, sign, coerces, alternate, zero, width, grouping, precision, type] = match
  return {
    fill: fill ?? (zero === undefined ? ' ' : '0'),
    align: align ?? '',
    sign: sign ?? '-',
    coerces: coerces !== undefined,
    alternate: alternate !== undefined,
    zero: zero !== undefined,
    width: Number(width ?? 0),
    grouping: grouping ?? '',
    precision: precision === undefined ? undefined : Number(precision),
    type: type ?? '',
  }
}

/** The first characters of a text, as many as given. */
export function limitText(text: Text, count: number | undefined): Text {
  if (count === undefined || plain(text).length <= count) return text
  const offsets = characterOffsets(plain(text))
  return sliceText(text, 0, offsets[Math.min(count, offsets.length - 1)] as number)
}

/** How a text is filled up to a width: `<` on the right, `>` on the left, `^` on both sides. */
export interface Padding {
  readonly width: number
  readonly fill: string
  readonly align: string
}

/** Fills a text up to a width in characters. */
export function padText(run: Run, text: Text, padding: Padding): Text {
  const missing = padding.width - countCharacters(plain(text))
  if (missing <= 0) return text
  spendText(run, padding.width)
  const left = padding.align === '>' ? missing : padding.align === '^' ? missing >> 1 : 0
  return joinTexts([padding.fill.repeat(left), text, padding.fill.repeat(missing - left)])
}

/** Python's `format(value, specification)`. */
export function formatValue(run: Run, value: Value, specification: string): Text {
  if (specification === '') return printable(run, value)
  if (isText(value)) return formatText(run, value, specification)
  const number = asNumber(value)
  if (number === undefined) {
    typeError(`unsupported format string passed to ${typeOf(value)}.__format__`)
  }
  return formatNumber(run, number, parseSpecification(specification, value))
}

function formatText(run: Run, value: Text, specification: string): Text {
  const parsed = parseSpecification(specification, value)
  if (parsed.type !== '' && parsed.type !== 's') {
    valueError(`Unknown format code '${parsed.type}' for object of type 'str'`)
  }
  if (parsed.align === '=' || parsed.sign !== '-' || parsed.grouping !== '' || parsed.coerces) {
    valueError(`Invalid format specifier '${specification}' for object of type 'str'`)
  }
  const text = limitText(printable(run, value), parsed.precision)
  return padText(run, text, { ...parsed, align: parsed.align || '<' })
}

const INT_TYPES = /^[bcdnoxX]?$/
const FLOAT_TYPES = /^[eEfFgGn%]?$/

function formatNumber(
  run: Run,
  value: number | bigint | PythonFloat,
  format: Specification,
): string {
  spendText(run, format.width + (format.precision ?? 0))
  const isFloat =
    value instanceof PythonFloat || (typeof value === 'number' && !Number.isInteger(value))
  if (!isFloat && INT_TYPES.test(format.type)) {
    if (format.precision !== undefined)
      valueError('Precision not allowed in integer format specifier')
    if (format.type === 'c') return String.fromCodePoint(Number(value))
    const digits = intDigits(value as number | bigint, format)
    return pad(signed(value < 0, group(digits, format), format), format)
  }
  if (!FLOAT_TYPES.test(format.type)) {
    valueError(
      `Unknown format code '${format.type}' for object of type '${isFloat ? 'float' : 'int'}'`,
    )
  }
  const double = toDouble(value)
  const digits = floatDigits(double, format)
  const isZero = format.coerces && !/[1-9]/.test(digits)
  const negative = !isZero && (double < 0 || Object.is(double, -0))
  return pad(signed(negative, group(digits, format), format), format)
}

function group(digits: string, format: Specification): string {
  if (format.grouping === '') return digits
  const size = /[boxX]/.test(format.type) ? 4 : 3
  const [, prefix = '', whole = '', rest = ''] =
    /^(0[boxX])?([0-9a-fA-F]+)(.*)$/s.exec(digits) ?? []
  const first = whole.length % size
  const groups = first > 0 ? [whole.slice(0, first)] : []
  for (let start = first; start < whole.length; start += size) {
    groups.push(whole.slice(start, start + size))
  }
  return prefix + groups.join(format.grouping) + rest
}

function signed(negative: boolean, digits: string, format: Specification): [string, string] {
  const sign = negative ? '-' : format.sign === '-' ? '' : format.sign
  return [sign, digits]
}

function pad([sign, digits]: [string, string], format: Specification): string {
  const missing = Math.max(0, format.width - sign.length - digits.length)
  const align = format.align || (format.zero ? '=' : '>')
  if (align === '=') {
    const [prefix, rest] = splitPrefix(digits)
    return sign + prefix + format.fill.repeat(missing) + rest
  }
  const left = align === '>' ? missing : align === '^' ? missing >> 1 : 0
  return format.fill.repeat(left) + sign + digits + format.fill.repeat(missing - left)
}
