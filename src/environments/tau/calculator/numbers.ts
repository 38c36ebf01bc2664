import { PythonError } from '../../../python/error.ts'

/** A number of the calculator: a bigint is Python's `int`, a number its `float`. */
export type Quantity = bigint | number

/** Results beyond this size stop the calculation, where Python would go on until memory ends. */
const MAXIMUM_BITS = 2_000_000

const TOO_LARGE = 'int too large to convert to float'

/** The nearest double, ties to even; an `int` beyond the largest double raises. */
export function toDouble(value: Quantity): number {
  const double = Number(value)
  if (typeof value === 'number' || Number.isFinite(double)) return double
  throw new PythonError('OverflowError', TOO_LARGE)
}

const bitsOf = (value: bigint): number => value.toString(16).length * 4

function guardSize(bits: number): void {
  if (bits > MAXIMUM_BITS) throw new PythonError('OverflowError', TOO_LARGE)
}

/** Applies one of Python's five operators to two numbers. */
export function combine(operator: string, left: Quantity, right: Quantity): Quantity {
  if (typeof left === 'bigint' && typeof right === 'bigint') {
    return combineInts(operator, left, right)
  }
  return combineFloats(operator, toDouble(left), toDouble(right))
}

function combineInts(operator: string, left: bigint, right: bigint): Quantity {
  switch (operator) {
    case '+':
      return left + right
    case '-':
      return left - right
    case '*':
      guardSize(bitsOf(left) + bitsOf(right))
      return left * right
    case '/':
      return divideInts(left, right)
    default:
      return floorDivideInts(left, right)
  }
}

function combineFloats(operator: string, left: number, right: number): number {
  switch (operator) {
    case '+':
      return left + right
    case '-':
      return left - right
    case '*':
      return left * right
    case '/':
      if (right === 0) throw new PythonError('ZeroDivisionError', 'float division by zero')
      return left / right
    default:
      return floorDivideFloats(left, right)
  }
}

function floorDivideInts(left: bigint, right: bigint): bigint {
  if (right === 0n) {
    throw new PythonError('ZeroDivisionError', 'integer division or modulo by zero')
  }
  const quotient = left / right
  return left % right !== 0n && left < 0n !== right < 0n ? quotient - 1n : quotient
}

/** CPython's floor division of floats, by way of the remainder. */
function floorDivideFloats(left: number, right: number): number {
  if (right === 0) throw new PythonError('ZeroDivisionError', 'float floor division by zero')
  const remainder = left % right
  let quotient = (left - remainder) / right
  if (remainder !== 0 && right < 0 !== remainder < 0) quotient -= 1
  if (quotient === 0) return left / right < 0 || Object.is(left / right, -0) ? -0 : 0
  const floor = Math.floor(quotient)
  return quotient - floor > 0.5 ? floor + 1 : floor
}

/** Correctly rounded division of integers of any size. */
export function divideInts(left: bigint, right: bigint): number {
  if (right === 0n) throw new PythonError('ZeroDivisionError', 'division by zero')
  const negative = left < 0n !== right < 0n
  const magnitude = divideMagnitudes(absolute(left), absolute(right))
  if (magnitude === Infinity) {
    throw new PythonError('OverflowError', 'integer division result too large for a float')
  }
  return negative ? -magnitude : magnitude
}

const absolute = (value: bigint): bigint => (value < 0n ? -value : value)

const isSafe = (value: bigint): boolean => value <= 9007199254740992n

function divideMagnitudes(left: bigint, right: bigint): number {
  if (isSafe(left) && isSafe(right)) return Number(left) / Number(right)
  // More quotient bits than a double holds; the last one says whether there is a remainder.
  const shift = 66 - (bitsOf(left) - bitsOf(right))
  const over = shift > 0 ? left << BigInt(shift) : left
  const under = shift > 0 ? right : right << BigInt(-shift)
  const quotient = (over / under) | (over % under === 0n ? 0n : 1n)
  return scale(quotient, -shift)
}

/** The double nearest to `mantissa * 2^exponent`, ties to even. */
function scale(mantissa: bigint, exponent: number): number {
  if (mantissa === 0n) return 0
  const width = mantissa.toString(2).length
  if (width + exponent > 1024) return Infinity
  // A double keeps 53 bits, fewer where the result is subnormal.
  const keep = Math.min(53, width + exponent + 1074)
  if (keep < 0) return 0
  const drop = Math.max(0, width - keep)
  const unit = 1n << BigInt(drop)
  const rest = mantissa & (unit - 1n)
  let kept = mantissa >> BigInt(drop)
  if (rest * 2n > unit || (rest * 2n === unit && (kept & 1n) === 1n)) kept += 1n
  return multiplyByPowerOfTwo(Number(kept), exponent + drop)
}

/** Exact unless it overflows: the value has already been rounded to the bits that remain. */
function multiplyByPowerOfTwo(value: number, exponent: number): number {
  let result = value
  let left = exponent
  for (; left > 1000; left -= 1000) result *= 2 ** 1000
  for (; left < -1000; left += 1000) result *= 2 ** -1000
  return result * 2 ** left
}

/** A power; `complex` where a negative number meets a fractional exponent. */
export function raise(base: Quantity, exponent: Quantity): Quantity | 'complex' {
  if (typeof base === 'bigint' && typeof exponent === 'bigint' && exponent >= 0n) {
    return raiseInts(base, exponent)
  }
  return raiseFloats(toDouble(base), toDouble(exponent))
}

function raiseInts(base: bigint, exponent: bigint): bigint {
  if (exponent === 0n) return 1n
  if (base === 0n || base === 1n) return base
  if (base === -1n) return exponent % 2n === 0n ? 1n : -1n
  guardSize((base.toString(2).length - 1) * Number(exponent))
  return base ** exponent
}

function raiseFloats(base: number, exponent: number): number | 'complex' {
  if (exponent === 0 || base === 1) return 1
  if (base === 0 && exponent < 0) {
    throw new PythonError('ZeroDivisionError', '0.0 cannot be raised to a negative power')
  }
  const bothFinite = Number.isFinite(base) && Number.isFinite(exponent)
  if (!bothFinite) return base === -1 ? 1 : base ** exponent
  if (base < 0 && !Number.isInteger(exponent)) return 'complex'
  const power = exactPower(base, exponent) ?? base ** exponent
  if (!Number.isFinite(power)) {
    throw new PythonError('OverflowError', "(34, 'Numerical result out of range')")
  }
  return power
}

/** Powers with small whole exponents are computed exactly and rounded once, as good libraries do. */
function exactPower(base: number, exponent: number): number | undefined {
  if (!Number.isInteger(exponent) || Math.abs(exponent) > 1024 || base === 0) {
    return undefined
  }
  const { mantissa, shift } = decompose(Math.abs(base))
  const times = Math.abs(exponent)
  const power = mantissa ** BigInt(times)
  const magnitude = exponent > 0 ? scale(power, shift * times) : scaledInverse(power, shift * times)
  return base < 0 && times % 2 === 1 ? -magnitude : magnitude
}

function scaledInverse(power: bigint, shift: number): number {
  const width = power.toString(2).length + 64
  const over = 1n << BigInt(width)
  const quotient = (over / power) | (over % power === 0n ? 0n : 1n)
  // 64 bits and a sticky one are enough to round once, whatever the exponent.
  return scale(quotient, -width - shift)
}

/** A positive finite double as an odd integer times a power of two. */
function decompose(value: number): { mantissa: bigint; shift: number } {
  let mantissa = value
  let shift = 0
  while (!Number.isSafeInteger(mantissa) && mantissa < 1) {
    mantissa *= 2 ** 50
    shift -= 50
  }
  while (!Number.isInteger(mantissa)) {
    mantissa *= 2
    shift -= 1
  }
  let odd = BigInt(mantissa)
  while ((odd & 1n) === 0n) {
    odd >>= 1n
    shift += 1
  }
  return { mantissa: odd, shift }
}
