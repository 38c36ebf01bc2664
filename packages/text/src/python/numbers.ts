import { asNumber, asText, typeName } from './compare.ts'
import { PythonError } from './error.ts'
import { typeError, valueError } from './methods/arguments.ts'
import { stripText } from './methods/text.ts'
import { roundFloat, roundToInt, toDouble } from './number.ts'
import { reprString } from './repr.ts'
import { plain } from './text/text.ts'
import { PythonFloat, type Text, toInt, type Value } from './value.ts'

const DIGITS = /^[-+]?[0-9a-zA-Z]+(?:_[0-9a-zA-Z]+)*$/
const PREFIXED = /^0(?:[bB]|[oO]|[xX])_?/
const RADIX: Readonly<Record<string, number>> = { b: 2, o: 8, x: 16 }
/** As many digits as Python converts between `int` and text. */
const MAXIMUM_DIGITS = 4300

const DECIMAL = /\p{Nd}/gu
const ASCII = /^\p{ASCII}*$/u

/** Decimal digits of any script as those of ASCII. */
function toAscii(text: string): string {
  if (ASCII.test(text)) return text
  return text.replace(DECIMAL, digit => {
    const code = digit.codePointAt(0) as number
    let zero = code
    while (/\p{Nd}/u.test(String.fromCodePoint(zero - 1)) && code - zero < 9) zero--
    return String(code - zero)
  })
}

/** Python's `int(text, base)`, or `undefined` if it raises. */
export function readWhole(value: Text, base: number): number | bigint | undefined {
  const text = toAscii(plain(stripText(value, undefined, 'both')))
  if (!DIGITS.test(text.replace(PREFIXED, '0'))) return undefined
  const negative = text.startsWith('-')
  const unsigned = text.replace(/^[-+]/, '')
  const prefix = PREFIXED.exec(unsigned)?.[0] ?? ''
  const said = RADIX[(prefix[1] ?? '').toLowerCase()]
  const radix = base === 0 ? (said ?? 10) : base
  const body = (said === radix ? unsigned.slice(prefix.length) : unsigned).replaceAll('_', '')
  if (body.length > MAXIMUM_DIGITS && (radix & (radix - 1)) !== 0) return undefined
  if (base === 0 && said === undefined && /^0+[1-9]/.test(body)) return undefined
  let total = 0n
  for (const character of body) {
    const digit = Number.parseInt(character, 36)
    if (!(digit < radix)) return undefined
    total = total * BigInt(radix) + BigInt(digit)
  }
  return body === '' ? undefined : toInt(negative ? -total : total)
}

/** Each digit can be read in one way only, so that a text is refused in linear time. */
const FLOAT =
  /^[-+]?(?:(?:[0-9]+(?:_[0-9]+)*(?:\.(?:[0-9]+(?:_[0-9]+)*)?)?|\.[0-9]+(?:_[0-9]+)*)(?:[eE][-+]?[0-9]+(?:_[0-9]+)*)?|inf(?:inity)?|nan)$/i

/** Python's `float(text)`, or `undefined` if it raises. */
export function readFloat(value: Text): number | undefined {
  const text = toAscii(plain(stripText(value, undefined, 'both')))
  if (!FLOAT.test(text)) return undefined
  const body = text.replace(/^[-+]/, '').toLowerCase()
  const sign = text.startsWith('-') ? -1 : 1
  if (body.startsWith('inf')) return sign * Number.POSITIVE_INFINITY
  if (body === 'nan') return Number.NaN
  return sign * Number(body.replaceAll('_', ''))
}

/** Python's `float(value)`. */
export function toFloat(value: Value = 0): PythonFloat {
  const number = asNumber(value)
  if (number !== undefined) return new PythonFloat(toDouble(number))
  const text = asText(value)
  if (text === undefined)
    typeError(`float() argument must be a string or a real number, not '${typeName(value)}'`)
  const read = readFloat(text)
  if (read === undefined) valueError(`could not convert string to float: ${reprString(text)}`)
  return new PythonFloat(read)
}

/** Python's `int(value)` or `int(text, base)`. */
export function toWhole(value: Value = 0, base?: Value): number | bigint {
  const text = asText(value)
  if (base !== undefined && text === undefined)
    typeError("int() can't convert non-string with explicit base")
  if (text !== undefined) return wholeOf(text, base)
  const number = asNumber(value)
  if (number === undefined) {
    typeError(
      `int() argument must be a string, a bytes-like object or a real number, not '${typeName(value)}'`,
    )
  }
  if (typeof number === 'bigint') return number
  const double = toDouble(number)
  // what has no whole part raises as it does in rounding
  return Number.isFinite(double) ? toInt(BigInt(Math.trunc(double))) : roundToInt(double)
}

function wholeOf(text: string, base: Value = 10): number | bigint {
  if (typeof base !== 'number' || !Number.isInteger(base))
    typeError(`'${typeName(base)}' object cannot be interpreted as an integer`)
  if (base !== 0 && (base < 2 || base > 36)) valueError('int() base must be >= 2 and <= 36, or 0')
  const read = readWhole(text, base)
  if (read === undefined)
    valueError(`invalid literal for int() with base ${base}: ${reprString(text)}`)
  return read
}

/** Python's `round(value)` and `round(value, digits)`. */
export function round(value: Value, digits: Value = null): Value {
  const number = asNumber(value)
  if (number === undefined) typeError(`type ${typeName(value)} doesn't define __round__ method`)
  if (digits !== null && (typeof digits !== 'number' || !Number.isInteger(digits)))
    typeError(`'${typeName(digits)}' object cannot be interpreted as an integer`)
  if (typeof number === 'bigint' || (typeof number === 'number' && Number.isInteger(number)))
    return roundInt(number, digits ?? 0)
  const double = toDouble(number)
  if (digits === null) return roundToInt(double)
  const rounded = roundFloat(double, digits)
  if (Number.isFinite(rounded) || !Number.isFinite(double)) return new PythonFloat(rounded)
  throw new PythonError('OverflowError', 'rounded value too large to represent')
}

/** An int rounded to tens, hundreds and so on, half to even. */
function roundInt(value: number | bigint, digits: number): number | bigint {
  if (digits >= 0) return value
  if (digits < -MAXIMUM_DIGITS) return 0
  const unit = 10n ** BigInt(-digits)
  const whole = BigInt(value)
  const rest = ((whole % unit) + unit) % unit
  const low = whole - rest
  const isUp = rest * 2n > unit || (rest * 2n === unit && (low / unit) % 2n !== 0n)
  return toInt(isUp ? low + unit : low)
}

/** Python's `abs`. */
export function absolute(value: Value): Value {
  const number = asNumber(value)
  if (number === undefined) return typeError(`bad operand type for abs(): '${typeName(value)}'`)
  if (number instanceof PythonFloat) return new PythonFloat(Math.abs(number.value))
  return number < 0 ? toInt(-BigInt(number)) : number
}
