import { PythonError } from '../error.ts'
import { divideInts, floorDivideFloats } from '../exact.ts'
import { floatPower } from '../power.ts'

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

/** A power; `complex` if a negative number meets a fractional exponent. */
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
  const isComplex = base < 0 && Number.isFinite(base) && !Number.isInteger(exponent)
  return isComplex && Number.isFinite(exponent) ? 'complex' : floatPower(base, exponent)
}
