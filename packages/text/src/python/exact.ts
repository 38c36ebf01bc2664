import { PythonError } from './error.ts'

/** CPython's floor division of floats, by way of the remainder. */
export function floorDivideFloats(left: number, right: number): number {
  if (right === 0) throw new PythonError('ZeroDivisionError', 'float floor division by zero')
  const remainder = left % right
  const crosses = remainder !== 0 && remainder < 0 !== right < 0
  const quotient = (left - remainder) / right - (crosses ? 1 : 0)
  if (quotient === 0) {
    const sign = left / right
    return sign < 0 || Object.is(sign, -0) ? -0 : 0
  }
  const floor = Math.floor(quotient)
  return quotient - floor > 0.5 ? floor + 1 : floor
}

/** A finite float that is not negative, as a whole number times a power of two. */
export function decompose(value: number): { mantissa: bigint; exponent: number } {
  const view = new DataView(new ArrayBuffer(8))
  view.setFloat64(0, value)
  const bits = view.getBigUint64(0)
  const biased = Number((bits >> 52n) & 0x7ffn)
  const fraction = bits & 0xfffffffffffffn
  if (biased === 0) return { mantissa: fraction, exponent: -1074 }
  return { mantissa: fraction | 0x10000000000000n, exponent: biased - 1075 }
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

const bitLength = (value: bigint): number => value.toString(2).length

const isSafe = (value: bigint): boolean => value <= 9007199254740992n

function divideMagnitudes(left: bigint, right: bigint): number {
  if (isSafe(left) && isSafe(right)) return Number(left) / Number(right)
  // More quotient bits than a double holds; the last one says whether there is a remainder.
  const shift = 66 - (bitLength(left) - bitLength(right))
  const over = shift > 0 ? left << BigInt(shift) : left
  const under = shift > 0 ? right : right << BigInt(-shift)
  const quotient = (over / under) | (over % under === 0n ? 0n : 1n)
  return scale(quotient, -shift)
}

/** The double nearest to `mantissa * 2^exponent`, ties to even. */
export function scale(mantissa: bigint, exponent: number): number {
  if (mantissa === 0n) return 0
  const width = bitLength(mantissa)
  if (width + exponent > 1024) return Infinity
  // A double keeps 53 bits, fewer if the result is subnormal.
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
