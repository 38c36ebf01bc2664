import { asNumber } from '../../python/compare.ts'
import { PythonError } from '../../python/error.ts'
import { requireInt, requireText } from '../../python/methods/arguments.ts'
import { stripText } from '../../python/methods/text.ts'
import { arithmetic, negate, roundFloat, toDouble, toFixedExactly } from '../../python/number.ts'
import { plain } from '../../python/text/text.ts'
import { PythonFloat, toInt } from '../../python/value.ts'
import { isTrue } from '../operations.ts'
import type { Method, MethodBody } from '../signature.ts'
import { method, signature } from '../signature.ts'
import type { Text, Value } from '../value.ts'
import { isText, typeError, typeOf, Undefined } from '../value.ts'

const DIGITS = /^[-+]?[0-9a-zA-Z]+(?:_[0-9a-zA-Z]+)*$/
const PREFIXES: Readonly<Record<number, RegExp>> = { 2: /^0[bB]/, 8: /^0[oO]/, 16: /^0[xX]/ }

/** Python's `int(text, base)`, or `undefined` where it raises. */
export function parseInteger(value: Text, base: number): number | bigint | undefined {
  const text = plain(stripText(value, undefined, 'both'))
  if (!DIGITS.test(text)) return undefined
  const negative = text.startsWith('-')
  const body = text
    .replace(/^[-+]/, '')
    .replaceAll('_', '')
    .replace(PREFIXES[base] ?? /^(?!)/, '')
  if (body.length > 4300) return undefined
  let total = 0n
  for (const character of body) {
    const digit = Number.parseInt(character, 36)
    if (!(digit < base)) return undefined
    total = total * BigInt(base) + BigInt(digit)
  }
  return body === '' ? undefined : toInt(negative ? -total : total)
}

/** Each digit can be read in one way only, so that a text is refused in linear time. */
const FLOAT =
  /^[-+]?(?:(?:[0-9]+(?:_[0-9]+)*)?(?:\.(?:[0-9]+(?:_[0-9]+)*)?)?(?:[eE][-+]?[0-9]+(?:_[0-9]+)*)?|inf(?:inity)?|nan)$/i

/** Python's `float(text)`, or `undefined` where it raises. */
export function parseFloatText(value: Text): number | undefined {
  const text = plain(stripText(value, undefined, 'both')).replace(/_/g, '_')
  if (!FLOAT.test(text) || !/[0-9]|inf|nan/i.test(text) || /^[-+]?\.?e/i.test(text))
    return undefined
  const body = text.replace(/^[-+]/, '').toLowerCase()
  const sign = text.startsWith('-') ? -1 : 1
  if (body.startsWith('inf')) return sign * Number.POSITIVE_INFINITY
  if (body === 'nan') return Number.NaN
  return sign * Number(body.replaceAll('_', ''))
}

function toFloat(value: Value): number | undefined {
  if (value instanceof Undefined) value.raise()
  if (isText(value)) return parseFloatText(value)
  const number = asNumber(value)
  return number === undefined ? undefined : toDouble(number)
}

function truncate(value: number): number | bigint | undefined {
  if (!Number.isFinite(value)) return undefined
  const whole = Math.trunc(value)
  return Number.isSafeInteger(whole) ? whole + 0 : BigInt(whole)
}

const int: MethodBody<Value> = (value, [fallback = 0, base]) => {
  if (value instanceof Undefined) value.raise()
  if (isText(value)) {
    const whole = parseInteger(value, requireInt(base, 10))
    if (whole !== undefined) return whole
  } else {
    const number = asNumber(value)
    if (typeof number === 'bigint') return number
  }
  const float = toFloat(value)
  return (float === undefined ? undefined : truncate(float)) ?? fallback
}

const float: MethodBody<Value> = (value, [fallback = new PythonFloat(0)]) => {
  const number = toFloat(value)
  return number === undefined ? fallback : new PythonFloat(number)
}

const abs: MethodBody<Value> = value => {
  if (value instanceof Undefined) return typeError("bad operand type for abs(): 'Undefined'")
  const number = asNumber(value)
  if (number === undefined) return typeError(`bad operand type for abs(): '${typeOf(value)}'`)
  if (number instanceof PythonFloat) return new PythonFloat(Math.abs(number.value))
  return number < 0 ? negate(number) : number
}

const round: MethodBody<Value> = (value, [precision, how = 'common']) => {
  const digits = requireInt(precision, 0)
  const wanted = requireText(how, 'method')
  if (wanted !== 'common' && wanted !== 'ceil' && wanted !== 'floor') {
    throw new PythonError('FilterArgumentError', 'method must be common, ceil or floor')
  }
  const number = asNumber(value)
  if (number === undefined) {
    return typeError(`type ${typeOf(value)} doesn't define __round__ method`)
  }
  if (wanted === 'common') {
    if (number instanceof PythonFloat) return new PythonFloat(roundFloat(number.value, digits))
    return digits >= 0 ? number : roundInt(BigInt(number), -digits)
  }
  const scale = digits >= 0 ? arithmetic('**', 10, digits) : new PythonFloat(10 ** digits)
  const scaled = toDouble(arithmetic('*', number, scale))
  const whole = truncate(wanted === 'ceil' ? Math.ceil(scaled) : Math.floor(scaled)) ?? 0
  return arithmetic('/', whole, scale)
}

function roundInt(value: bigint, zeros: number): number | bigint {
  const unit = 10n ** BigInt(Math.min(zeros, 400))
  const floor = value >= 0n ? value / unit : -((-value + unit - 1n) / unit)
  const twice = (value - floor * unit) * 2n
  const up = twice > unit || (twice === unit && floor % 2n !== 0n)
  return toInt((up ? floor + 1n : floor) * unit)
}

const UNITS = ['k', 'M', 'G', 'T', 'P', 'E', 'Z', 'Y']

const filesizeformat: MethodBody<Value> = (value, [binary = false]) => {
  const bytes = toFloat(value)
  if (bytes === undefined) return typeError(`could not convert ${typeOf(value)} to float`)
  const base = isTrue(binary) ? 1024 : 1000
  if (bytes === 1) return '1 Byte'
  if (bytes < base) return `${truncate(bytes)} Bytes`
  const steps = UNITS.findIndex((_, index) => bytes < base ** (index + 2))
  const power = steps < 0 ? UNITS.length - 1 : steps
  const letter = UNITS[power] as string
  const unit = isTrue(binary) ? `${letter.toUpperCase()}iB` : `${letter}B`
  return `${toFixedExactly((base * bytes) / base ** (power + 2), 1)} ${unit}`
}

/** The filters on numbers. */
export const NUMBER_FILTERS: readonly (readonly [string, Method])[] = [
  ['int', method(signature('int', 'default? base?'), int)],
  ['float', method(signature('float', 'default?'), float)],
  ['abs', method(signature('abs', '', false), abs)],
  ['round', method(signature('round', 'precision? method?'), round)],
  ['filesizeformat', method(signature('filesizeformat', 'binary?'), filesizeformat)],
]
