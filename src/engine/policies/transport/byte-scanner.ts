export const comma = 44
export const opening = 91
export const closing = 93
const closingBrace = 125
const quote = 34
const minus = 45
const dot = 46
const zero = 48
const nine = 57
/** Up to this many digits, a double holds the digits and the power of ten exactly. */
const exactDigits = 15
/** Up to this many digits make a small integer. */
const mostTogether = 9
const powers = Array.from({ length: exactDigits + 1 }, (_, exponent) => 10 ** exponent)
const anyNumber = /^-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?/
/** The bytes that can be part of a number. */
const inNumbers = new Uint8Array(256)
for (const byte of Buffer.from('0123456789+-.eE')) inNumbers[byte] = 1
/** The bytes that end a number, or one in quotes. */
const endsNumber = new Uint8Array(256)
for (const byte of [comma, closing, closingBrace, quote]) endsNumber[byte] = 1

/** Reads numbers straight from the bytes of an answer, from a place on. */
export class ByteScanner {
  at: number
  readonly #bytes: Buffer

  constructor(bytes: Buffer, at: number) {
    this.#bytes = bytes
    this.at = at
  }

  /** The byte here; undefined behind the end. */
  get byte(): number | undefined {
    return this.#bytes[this.at]
  }

  /** The byte here; goes past it. */
  next(): number | undefined {
    return this.#bytes[this.at++]
  }

  /** Goes past these bytes if they stand here. */
  passes(expected: Uint8Array): boolean {
    for (let index = 0; index < expected.length; index++) {
      if (this.#bytes[this.at + index] !== expected[index]) return false
    }
    this.at += expected.length
    return true
  }

  /** Goes to the next place with this byte, or to the end. */
  seek(byte: number): void {
    const bytes = this.#bytes
    let at = this.at
    while (at < bytes.length && bytes[at] !== byte) at++
    this.at = at
  }

  /** A token id; NaN or what stands there where it is none. */
  readId(): number {
    const bytes = this.#bytes
    const first = this.at
    let id = 0
    let at = first
    for (const stop = first + mostTogether; at < stop; at++) {
      const digit = bytes[at]! - zero
      if (!(digit >= 0 && digit <= 9)) break
      id = (id * 10 + digit) | 0
    }
    const isPlain = endsNumber[bytes[at]!] === 1 && (at === first + 1 || bytes[first] !== zero)
    if (!isPlain || at === first) return this.#readAny()
    this.at = at
    return id
  }

  /**
   * A number as JSON writes it, NaN if there is none. Its digits are gathered in small integers, which
   * is several times as fast as in a double. One with many digits is used if its first digits, and those
   * plus one, round to the same 32-bit float: the remaining digits then cannot matter.
   */
  readNumber(): number {
    const bytes = this.#bytes
    const isNegative = bytes[this.at] === minus
    const first = isNegative ? this.at + 1 : this.at
    // Mostly a digit and a point; all others are few.
    if (!isDigit(bytes[first]!) || bytes[first + 1] !== dot) return this.#readAny()
    let at = first + 2
    let high = bytes[first]! - zero
    for (const stop = first + mostTogether + 1; at < stop; at++) {
      const digit = bytes[at]! - zero
      if (!(digit >= 0 && digit <= 9)) break
      high = (high * 10 + digit) | 0
    }
    const middle = at
    let low = 0
    for (const stop = first + exactDigits + 1; at < stop; at++) {
      const digit = bytes[at]! - zero
      if (!(digit >= 0 && digit <= 9)) break
      low = (low * 10 + digit) | 0
    }
    const last = at
    while (isDigit(bytes[at]!)) at++
    if (last === first + 2 || endsNumber[bytes[at]!] !== 1) return this.#readAny()
    const mantissa = high * powers[last - middle]! + low
    const power = powers[last - first - 2]!
    const value = mantissa / power
    const isSure = at === last || Math.fround(value) === Math.fround((mantissa + 1) / power)
    if (!isSure) return this.#readAny()
    this.at = at
    return isNegative ? -value : value
  }

  /** A number in any of JSON's forms. */
  #readAny(): number {
    let end = this.at
    while (inNumbers[this.#bytes[end]!] === 1) end++
    const [number] = anyNumber.exec(this.#bytes.toString('latin1', this.at, end)) ?? []
    if (number === undefined) return Number.NaN
    this.at += number.length
    return Number(number)
  }
}

function isDigit(byte: number): boolean {
  return byte >= zero && byte <= nine
}
