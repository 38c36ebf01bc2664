/** Powers of ten that a double holds exactly. */
const powers = Float64Array.from({ length: 23 }, (_, exponent) => Number(`1e${exponent}`))

const shift = 2 ** 30

/**
 * The shortest decimal that reads back as the same 32-bit float, as `digits / 10^scale`, packed into
 * one number so that nothing is allocated for it: `digitsOf` and `scaleOf` take it apart. −1 if
 * the value is too large or too small for powers of ten that a double holds exactly.
 */
export function shortestDecimal(value: number): number {
  if (!(value >= 1e-14 && value < 1e9)) return -1
  let magnitude = 0
  if (value >= 1) while (value >= powers[magnitude + 1]!) magnitude++
  else while (value * powers[-magnitude]! < 1) magnitude--
  // A 32-bit float has at most nine digits; six are enough for the round ones.
  for (let count = 6; count <= 9; count++) {
    const scale = Math.max(0, count - 1 - magnitude)
    const digits = Math.round(value * powers[scale]!)
    if (Math.fround(digits / powers[scale]!) === value) return scale * shift + digits
  }
  return -1
}

/** The digits of a packed decimal, as one whole number. */
export function digitsOf(packed: number): number {
  return packed % shift
}

/** How many of the digits of a packed decimal come after its point. */
export function scaleOf(packed: number): number {
  return Math.floor(packed / shift)
}

/** The shortest decimal that reads back as the same 32-bit float; `null` if it is not finite. */
export function shortestFloat32(value: number): string {
  if (!Number.isFinite(value)) return 'null'
  if (Number.isInteger(value)) return value === 0 ? '0' : String(value)
  const packed = shortestDecimal(Math.abs(value))
  // Dividing by an exact power of ten rounds correctly, so the quotient prints as those digits.
  if (packed >= 0) return String((Math.sign(value) * digitsOf(packed)) / powers[scaleOf(packed)]!)
  for (let count = 6; count < 9; count++) {
    const text = value.toPrecision(count)
    if (Math.fround(Number(text)) === value) return String(Number(text))
  }
  return String(Number(value.toPrecision(9)))
}
