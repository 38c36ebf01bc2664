import { PythonError, UnsupportedError } from './error.ts'
import { decompose, scale } from './exact.ts'

/** Python's `**` of floats, rounded once from the exact value, as good libraries of C do. */
export function floatPower(base: number, exponent: number): number {
  if (exponent === 0 || base === 1) return 1
  if (base === 0 && exponent < 0) {
    throw new PythonError('ZeroDivisionError', '0.0 cannot be raised to a negative power')
  }
  if (!Number.isFinite(base) || !Number.isFinite(exponent)) {
    return base === -1 && Math.abs(exponent) === Number.POSITIVE_INFINITY ? 1 : base ** exponent
  }
  if (base === 0) return base ** exponent
  if (base < 0 && !Number.isInteger(exponent)) {
    throw new UnsupportedError('A power that is a complex number')
  }
  const power = Number.isInteger(exponent)
    ? (wholePower(base, exponent) ?? base ** exponent)
    : brokenPower(base, exponent)
  if (!Number.isFinite(power)) {
    throw new PythonError('OverflowError', "(34, 'Numerical result out of range')")
  }
  return power
}

/** Powers with small whole exponents are computed exactly. */
function wholePower(base: number, exponent: number): number | undefined {
  if (Math.abs(exponent) > 1024) return undefined
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

/** Bits behind the point of the numbers below: twice as many as a double needs. */
const BITS = 160n
const ONE = 1n << BITS

/** A power of a positive number with a fraction in its exponent, by way of its logarithm. */
function brokenPower(base: number, exponent: number): number {
  const rough = base ** exponent
  if (rough === 0 || !Number.isFinite(rough)) return rough
  const { mantissa, exponent: shift } = decompose(base)
  const width = mantissa.toString(2).length
  const fraction = (mantissa << BITS) >> BigInt(width)
  const logarithm = logarithmOf(fraction) + BigInt(width + shift) * LOGARITHM_OF_TWO
  const part = decompose(Math.abs(exponent))
  const product =
    part.exponent >= 0
      ? (logarithm * part.mantissa) << BigInt(part.exponent)
      : (logarithm * part.mantissa) >> BigInt(-part.exponent)
  const power = exponent < 0 ? -product : product
  const twos = power / LOGARITHM_OF_TWO - (power < 0n ? 1n : 0n)
  return scale(exponentialOf(power - twos * LOGARITHM_OF_TWO), Number(twos - BITS))
}

/** The natural logarithm of a number between a half and one, by the series of the inverse tangent. */
function logarithmOf(value: bigint): bigint {
  const ratio = ((value - ONE) << BITS) / (value + ONE)
  const square = (ratio * ratio) >> BITS
  let term = ratio
  let sum = 0n
  for (let odd = 1n; term !== 0n && term !== -1n; odd += 2n) {
    sum += term / odd
    term = (term * square) >> BITS
  }
  return 2n * sum
}

const LOGARITHM_OF_TWO = -logarithmOf(ONE >> 1n)

function exponentialOf(value: bigint): bigint {
  let term = ONE
  let sum = 0n
  for (let count = 1n; term !== 0n && term !== -1n; count += 1n) {
    sum += term
    term = ((term * value) >> BITS) / count
  }
  return sum
}
