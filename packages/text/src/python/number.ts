import { PythonError } from './error.ts'
import { decompose, divideInts, floorDivideFloats } from './exact.ts'
import { floatPower } from './power.ts'
import { PythonFloat, toInt } from './value.ts'

/** A Python number of either type. */
export type PythonNumber = number | bigint | PythonFloat

/** Whether a number is a `float`; an `int` is a safe number or a bigint. */
const isFloat = (value: PythonNumber): boolean =>
  value instanceof PythonFloat || (typeof value === 'number' && !Number.isInteger(value))

/** The value as a double; an `int` too large for one raises, as in Python. */
export function toDouble(value: PythonNumber): number {
  if (typeof value === 'number') return value
  if (value instanceof PythonFloat) return value.value
  const double = Number(value)
  if (Number.isFinite(double)) return double
  throw new PythonError('OverflowError', 'int too large to convert to float')
}

/** Python's arithmetic on two numbers. */
export type Operation = '+' | '-' | '*' | '/' | '//' | '%' | '**'

/** Python's arithmetic on numbers: ints stay exact, `//` and `%` round towards minus infinity. */
export function arithmetic(
  operation: Operation,
  left: PythonNumber,
  right: PythonNumber,
): PythonNumber {
  if (operation === '/') return divide(left, right)
  if (isFloat(left) || isFloat(right)) {
    return new PythonFloat(floatArithmetic(operation, toDouble(left), toDouble(right)))
  }
  return intArithmetic(operation, left as number | bigint, right as number | bigint)
}

function floatArithmetic(operation: Operation, left: number, right: number): number {
  switch (operation) {
    case '+':
      return left + right
    case '-':
      return left - right
    case '*':
      return left * right
    case '//':
      return floorDivideFloats(left, right)
    case '%':
      return floatModulo(left, right)
    default:
      return floatPower(left, right)
  }
}

function divide(left: PythonNumber, right: PythonNumber): PythonFloat {
  if (typeof left === 'bigint' || typeof right === 'bigint') {
    if (!isFloat(left) && !isFloat(right) && right !== 0) {
      return new PythonFloat(divideInts(BigInt(left as bigint), BigInt(right as bigint)))
    }
  }
  const divisor = toDouble(right)
  if (divisor === 0) throw new PythonError('ZeroDivisionError', 'division by zero')
  return new PythonFloat(toDouble(left) / divisor)
}

function floatModulo(left: number, right: number): number {
  if (right === 0) throw new PythonError('ZeroDivisionError', 'float modulo')
  const remainder = left % right
  if (remainder === 0) return right < 0 || Object.is(right, -0) ? -0 : 0
  return remainder < 0 === right < 0 ? remainder : remainder + right
}

/** Most bits of an exact power; larger ones are refused, as no real calculation needs them. */
const MAXIMUM_POWER_BITS = 20_000

function intArithmetic(
  operation: Operation,
  left: number | bigint,
  right: number | bigint,
): PythonNumber {
  if (typeof left === 'number' && typeof right === 'number') {
    const result = safeArithmetic(operation, left, right)
    if (result !== undefined && Number.isSafeInteger(result)) return result + 0
  }
  return bigArithmetic(operation, BigInt(left), BigInt(right))
}

function safeArithmetic(operation: Operation, left: number, right: number): number | undefined {
  switch (operation) {
    case '+':
      return left + right
    case '-':
      return left - right
    case '*':
      return left * right
    case '//':
      return right === 0 ? undefined : (left - intModulo(left, right)) / right
    case '%':
      return right === 0 ? undefined : intModulo(left, right)
    default:
      return undefined
  }
}

function intModulo(left: number, right: number): number {
  const remainder = left % right
  return remainder !== 0 && remainder < 0 !== right < 0 ? remainder + right : remainder
}

function bigArithmetic(operation: Operation, left: bigint, right: bigint): PythonNumber {
  switch (operation) {
    case '+':
      return toInt(left + right)
    case '-':
      return toInt(left - right)
    case '*':
      return toInt(left * right)
    case '**':
      return intPower(left, right)
    default:
      return floorDivision(operation, left, right)
  }
}

function floorDivision(operation: Operation, left: bigint, right: bigint): number | bigint {
  if (right === 0n) {
    throw new PythonError('ZeroDivisionError', 'integer division or modulo by zero')
  }
  const remainder = left % right
  const crosses = remainder !== 0n && remainder < 0n !== right < 0n
  if (operation === '%') return toInt(crosses ? remainder + right : remainder)
  return toInt(crosses ? left / right - 1n : left / right)
}

function intPower(left: bigint, right: bigint): PythonNumber {
  if (right < 0n) {
    return new PythonFloat(floatPower(toDouble(left), toDouble(right)))
  }
  if (left === 0n || left === 1n) return right === 0n ? 1 : Number(left)
  if (left === -1n) return right % 2n === 0n ? 1 : -1
  if (BigInt(left.toString(2).length) * right > BigInt(MAXIMUM_POWER_BITS)) {
    throw new PythonError('OverflowError', `${left} ** ${right} has too many digits.`)
  }
  return toInt(left ** right)
}

/** The number with its sign turned. */
export function negate(value: PythonNumber): PythonNumber {
  if (value instanceof PythonFloat) return new PythonFloat(-value.value)
  return typeof value === 'bigint' ? toInt(-value) : isFloat(value) ? -value : 0 - value
}

/** Python's `~`. */
export const invert = (value: number | bigint): number | bigint => toInt(~BigInt(value))

/** Python's `round(x, digits)` of a float: half to even on the exact binary value. */
export function roundFloat(value: number, digits: number): number {
  if (!Number.isFinite(value) || value === 0) return value
  if (digits > 330) return value
  if (digits < -310) return value * 0
  // toFixed is exact as well, except that it takes exact ties away from zero
  if (digits >= 0 && digits <= 20 && Math.abs(value) < 1e15) {
    const halves = value * 2 ** (digits + 1)
    if (!Number.isInteger(halves) || halves % 2 === 0) return Number(value.toFixed(digits))
  }
  const rounded = roundExact(value, digits)
  return value < 0 && rounded === 0 ? -0 : rounded
}

function roundExact(value: number, digits: number): number {
  const { mantissa, exponent } = decompose(Math.abs(value))
  const sign = value < 0 ? '-' : ''
  // value = mantissa * 2^exponent; scaled = value * 10^digits as the fraction over/under
  let over = mantissa
  let under = 1n
  if (exponent >= 0) over <<= BigInt(exponent)
  else under <<= BigInt(-exponent)
  if (digits >= 0) over *= 10n ** BigInt(digits)
  else under *= 10n ** BigInt(-digits)
  return Number(`${sign}${halfEven(over, under)}e${-digits}`)
}

function halfEven(over: bigint, under: bigint): bigint {
  const quotient = over / under
  const twice = (over % under) * 2n
  if (twice > under || (twice === under && quotient % 2n === 1n)) return quotient + 1n
  return quotient
}

/** Python's `round(x)` without digits: the nearest int, half to even. */
export function roundToInt(value: number): number | bigint {
  if (!Number.isFinite(value)) {
    const [type, name] = Number.isNaN(value) ? ['ValueError', 'NaN'] : ['OverflowError', 'infinity']
    throw new PythonError(type, `cannot convert float ${name} to integer`)
  }
  const rounded = roundFloat(value, 0)
  return Number.isSafeInteger(rounded) ? rounded + 0 : BigInt(rounded)
}

/** The digits of a finite float with a fixed number of decimals, as `'%.2f'` writes them. */
export function toFixedExactly(value: number, decimals: number): string {
  const { mantissa, exponent } = decompose(Math.abs(value))
  let over = mantissa * 10n ** BigInt(decimals)
  let under = 1n
  if (exponent >= 0) over <<= BigInt(exponent)
  else under <<= BigInt(-exponent)
  const digits = halfEven(over, under)
    .toString()
    .padStart(decimals + 1, '0')
  const sign = value < 0 || Object.is(value, -0) ? '-' : ''
  if (decimals === 0) return sign + digits
  return `${sign}${digits.slice(0, -decimals)}.${digits.slice(-decimals)}`
}

/** The digits and decimal exponent of a finite float, rounded half to even as `'%e'` rounds. */
export function toExponentialExactly(
  value: number,
  decimals: number,
): { readonly digits: string; readonly exponent: number } {
  if (value === 0) return { digits: '0'.repeat(decimals + 1), exponent: 0 }
  const { mantissa, exponent: binary } = decompose(Math.abs(value))
  const exponent = Number(Math.abs(value).toExponential().split('e')[1])
  let over = mantissa
  let under = 1n
  if (binary >= 0) over <<= BigInt(binary)
  else under <<= BigInt(-binary)
  const shift = decimals - exponent
  if (shift >= 0) over *= 10n ** BigInt(shift)
  else under *= 10n ** BigInt(-shift)
  const digits = halfEven(over, under).toString()
  if (digits.length <= decimals + 1) return { digits, exponent }
  return { digits: digits.slice(0, -1), exponent: exponent + 1 }
}
