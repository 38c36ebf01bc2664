import { asNumber } from '../../python/compare.ts'
import { PythonError } from '../../python/error.ts'
import { requireInt, requireText } from '../../python/methods/arguments.ts'
import { arithmetic, negate, roundFloat, toDouble, toFixedExactly } from '../../python/number.ts'
import { readFloat, readWhole } from '../../python/numbers.ts'
import { PythonFloat, toInt } from '../../python/value.ts'
import { isTrue } from '../operations.ts'
import type { Method, MethodBody } from '../signature.ts'
import { method, signature } from '../signature.ts'
import type { Value } from '../value.ts'
import { isText, typeError, typeOf, Undefined } from '../value.ts'

function toFloat(value: Value): number | undefined {
  if (value instanceof Undefined) value.raise()
  if (isText(value)) return readFloat(value)
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
    const whole = readWhole(value, requireInt(base, 10))
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
