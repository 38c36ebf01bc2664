import { asNumber, isText, typeName } from '../compare.ts'
import { PythonError } from '../error.ts'
import { typeError, valueError } from '../methods/arguments.ts'
import { toDouble } from '../number.ts'
import type { Runtime } from '../runtime.ts'
import { spendText } from '../runtime.ts'
import { characterOffsets, countCharacters, joinTexts, plain, sliceText } from '../text/text.ts'
import { PythonFloat, type Text, type Value } from '../value.ts'
import type { NumberFormat } from './digits.ts'
import { floatDigits, groupDigits, intDigits, splitPrefix } from './digits.ts'

interface Specification extends NumberFormat {
  readonly fill: string
  readonly align: string
  readonly sign: string
  /** Whether a zero that rounding made negative loses its sign. */
  readonly coerces: boolean
  readonly width: number
  readonly grouping: string
}

const SPECIFICATION =
  /^(?:(.)?([<>=^]))?([-+ ])?(z)?(#)?(0)?([0-9]+)?(,)?(_)?(?:\.([0-9]+))?([\s\S])?$/su

/** Larger widths and precisions are refused, as Python refuses them on most machines. */
const MAXIMUM_COUNT = 2_147_483_647

function countOf(digits: string | undefined): number | undefined {
  if (digits === undefined) return undefined
  const count = Number(digits)
  if (count > MAXIMUM_COUNT) valueError('Too many decimal digits in format string')
  return count
}

function parseSpecification(text: string, value: Value): Specification {
  const match = SPECIFICATION.exec(text)
  if (!match)
    valueError(`Invalid format specifier '${text}' for object of type '${typeName(value)}'`)
  const [, fill, align, sign, coerces, alternate, zero, width, comma, underscore, precision, type] =
    match
  if (comma && underscore) valueError("Cannot specify both ',' and '_'.")
  // of a text, a zero before the width only fills
  const aligned = align ?? (zero !== undefined && !isText(value) ? '=' : '')
  return {
    fill: fill ?? (zero === undefined ? ' ' : '0'),
    align: aligned,
    sign: sign ?? '',
    coerces: coerces !== undefined,
    alternate: alternate !== undefined,
    width: countOf(width) ?? 0,
    grouping: comma ?? underscore ?? '',
    precision: countOf(precision),
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
export function padText(run: Runtime, text: Text, padding: Padding): Text {
  const missing = padding.width - countCharacters(plain(text))
  if (missing <= 0) return text
  spendText(run, padding.width)
  const left = padding.align === '>' ? missing : padding.align === '^' ? missing >> 1 : 0
  return joinTexts([padding.fill.repeat(left), text, padding.fill.repeat(missing - left)])
}

/** Python's `format(value, specification)`. */
export function formatValue(run: Runtime, value: Value, specification: string): Text {
  if (typeof value === 'object' && value !== null) {
    const own = run.language.format(run, value, specification)
    if (own !== undefined) return own
  }
  if (specification === '') return run.language.str(run, value)
  if (isText(value)) return formatText(run, value, specification)
  const number = asNumber(value)
  if (number === undefined) {
    typeError(`unsupported format string passed to ${typeName(value)}.__format__`)
  }
  return formatNumber(run, number, parseSpecification(specification, value))
}

function formatText(run: Runtime, value: Text, specification: string): Text {
  const parsed = parseSpecification(specification, value)
  if (parsed.type !== '' && parsed.type !== 's') {
    valueError(`Unknown format code '${parsed.type}' for object of type 'str'`)
  }
  if (parsed.sign !== '') valueError('Sign not allowed in string format specifier')
  if (parsed.coerces) {
    valueError('Negative zero coercion (z) not allowed in string format specifier')
  }
  if (parsed.alternate) valueError('Alternate form (#) not allowed in string format specifier')
  if (parsed.grouping !== '') valueError(`Cannot specify '${parsed.grouping}' with 's'.`)
  if (parsed.align === '=') valueError("'=' alignment not allowed in string format specifier")
  const text = limitText(run.language.str(run, value), parsed.precision)
  return padText(run, text, { ...parsed, align: parsed.align || '<' })
}

const INT_TYPES = /^[bcdnoxX]?$/
const FLOAT_TYPES = /^[eEfFgGn%]?$/

function formatNumber(
  run: Runtime,
  value: number | bigint | PythonFloat,
  format: Specification,
): string {
  spendText(run, format.width + (format.precision ?? 0))
  const isFloat =
    value instanceof PythonFloat || (typeof value === 'number' && !Number.isInteger(value))
  if (format.grouping !== '' && /[cn]/.test(format.type))
    valueError(`Cannot specify '${format.grouping}' with '${format.type}'.`)
  if (!isFloat && INT_TYPES.test(format.type)) return formatInt(value as number | bigint, format)
  if (!FLOAT_TYPES.test(format.type)) {
    valueError(
      `Unknown format code '${format.type}' for object of type '${isFloat ? 'float' : 'int'}'`,
    )
  }
  const double = toDouble(value)
  const digits = floatDigits(double, format)
  const isZero = format.coerces && !/[1-9]/.test(digits) && Number.isFinite(double)
  const negative = !isZero && (double < 0 || Object.is(double, -0))
  return pad(signOf(negative, format), digits, format)
}

function formatInt(value: number | bigint, format: Specification): string {
  const { type } = format
  if (format.precision !== undefined)
    valueError('Precision not allowed in integer format specifier')
  if (format.coerces)
    valueError('Negative zero coercion (z) not allowed in format specifier with integer')
  if (type === 'c') return formatCharacter(value, format)
  if (format.grouping === ',' && /[boxX]/.test(type))
    valueError(`Cannot specify ',' with '${type}'.`)
  return pad(signOf(value < 0, format), intDigits(value, format), format)
}

function formatCharacter(code: number | bigint, format: Specification): string {
  if (format.sign !== '') valueError("Sign not allowed with integer format specifier 'c'")
  if (format.alternate)
    valueError("Alternate form (#) not allowed with integer format specifier 'c'")
  if (code < 0 || code > 0x10ffff)
    throw new PythonError('OverflowError', '%c arg not in range(0x110000)')
  const character = String.fromCodePoint(Number(code))
  return pad('', character, { ...format, align: format.align || '<' })
}

const signOf = (negative: boolean, { sign }: Specification): string =>
  negative ? '-' : sign === '-' ? '' : sign

/** Zeros that fill a grouped number are grouped as well, so that it may become one wider. */
function pad(sign: string, digits: string, format: Specification): string {
  const { align: given, fill, width, grouping, type } = format
  const align = given || '>'
  const size = /[boxX]/.test(type) ? 4 : 3
  if (align === '=') {
    const [prefix, rest] = splitPrefix(digits)
    const room = Math.max(0, width - sign.length - prefix.length)
    if (fill === '0' && grouping !== '')
      return sign + prefix + groupDigits(rest, { grouping, size, width: room })
    const grouped = groupDigits(rest, { grouping, size, width: 0 })
    const missing = Math.max(0, room - countCharacters(grouped))
    return sign + prefix + fill.repeat(missing) + grouped
  }
  const [prefix, rest] = splitPrefix(digits)
  const text = sign + prefix + groupDigits(rest, { grouping, size, width: 0 })
  const missing = Math.max(0, width - countCharacters(text))
  const left = align === '>' ? missing : align === '^' ? missing >> 1 : 0
  return fill.repeat(left) + text + fill.repeat(missing - left)
}
