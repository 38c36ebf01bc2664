import { decompose, divideInts, floorDivideFloats, PythonError, scale } from '@espalier/text/python'

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
  const { mantissa, exponent: shift } = decompose(Math.abs(base))
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
