import { isId, isLogprob } from './reading.ts'

/** Tokens that were read from an answer's text. */
export interface Tokens {
  readonly ids: Int32Array
  readonly logprobs: Float32Array
}

/** An answer's text without its longest list, and what that list held. */
export interface TakenPairs extends Tokens {
  /** The text with an empty list in place of the one that was taken. */
  readonly rest: string
}

/**
 * Takes the list `"name":[[log-probability, id, null], …]` out of an answer. Such a list is most of an
 * answer, and reading it straight from the bytes into typed arrays costs a fraction of parsing it as
 * JSON. Undefined if the list does not have exactly this form or occurs twice: the answer is then
 * read as ordinary JSON, with the same result.
 */
export function takePairs(body: Buffer, name: string): TakenPairs | undefined {
  const key = `"${name}":[`
  const found = body.indexOf(key, 0, 'latin1')
  if (found < 0) return undefined
  const open = found + key.length
  const scanner = new Scanner(body, open)
  const count = scanner.readPairs()
  if (count === undefined || body.includes(key, scanner.at, 'latin1')) return undefined
  const rest = body.toString('utf8', 0, open) + body.toString('utf8', scanner.at)
  const { ids, logprobs } = copyPairs(count)
  return { ids, logprobs, rest }
}

/** Buffers for pairs until their number is known: ids, and their log-probabilities. */
let keptIds = new Int32Array(1024)
let keptLogprobs = new Float32Array(1024)

function keepPair(index: number, id: number, logprob: number): void {
  if (index === keptIds.length) {
    const [shortIds, shortLogprobs] = [keptIds, keptLogprobs]
    keptIds = new Int32Array(index * 2)
    keptLogprobs = new Float32Array(index * 2)
    keptIds.set(shortIds)
    keptLogprobs.set(shortLogprobs)
  }
  keptIds[index] = id
  keptLogprobs[index] = logprob
}

/** The pairs that were kept, in one piece of memory of their own. */
function copyPairs(count: number): Tokens {
  const memory = new ArrayBuffer(count * 8)
  const ids = new Int32Array(memory, 0, count)
  const logprobs = new Float32Array(memory, count * 4)
  ids.set(keptIds.subarray(0, count))
  logprobs.set(keptLogprobs.subarray(0, count))
  return { ids, logprobs }
}

const minus = 45
const dot = 46
const zero = 48
const nine = 57
const comma = 44
const opening = 91
const closing = 93
/** Up to this many digits, a double holds the digits and the power of ten exactly. */
const exactDigits = 15
/** Up to this many digits make a small integer. */
const mostTogether = 9
const powers = Array.from({ length: exactDigits + 1 }, (_, exponent) => 10 ** exponent)
const anyNumber = /^-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?/
/** The bytes that can be part of a number. */
const inNumbers = new Uint8Array(256)
for (const byte of Buffer.from('0123456789+-.eE')) inNumbers[byte] = 1
/** What follows the id of a pair. */
const pairEnd = Buffer.from(',null]')

/** Reads an answer from a place on, and stops where something is not as expected. */
class Scanner {
  at: number
  readonly #bytes: Buffer

  constructor(bytes: Buffer, at: number) {
    this.#bytes = bytes
    this.at = at
  }

  /** Keeps pairs up to the bracket that closes their list; gives their count. */
  readPairs(): number | undefined {
    const bytes = this.#bytes
    if (bytes[this.at] === closing) return 0
    for (let count = 0; bytes[this.at++] === opening; ) {
      const logprob = this.#readNumber()
      if (!isLogprob(logprob) || bytes[this.at++] !== comma) return undefined
      const id = this.#readId()
      if (!isId(id) || !this.#passes(pairEnd)) return undefined
      keepPair(count++, id, logprob)
      const next = bytes[this.at]
      if (next === closing) return count
      if (next !== comma) return undefined
      this.at++
    }
    return undefined
  }

  /** Goes past these bytes if they stand here. */
  #passes(expected: Uint8Array): boolean {
    for (let index = 0; index < expected.length; index++) {
      if (this.#bytes[this.at + index] !== expected[index]) return false
    }
    this.at += expected.length
    return true
  }

  /** A token id; NaN or what stands there where it is none. */
  #readId(): number {
    const bytes = this.#bytes
    const first = this.at
    let id = 0
    let at = first
    for (; isDigit(bytes[at]!) && at < first + mostTogether; at++) {
      id = (id * 10 + (bytes[at]! - zero)) | 0
    }
    const isPlain = bytes[at] === comma && (at === first + 1 || bytes[first] !== zero)
    if (!isPlain || at === first) return this.#readAny()
    this.at = at
    return id
  }

  /**
   * A number as JSON writes it, NaN if there is none. Its digits are gathered in small integers, which
   * is several times as fast as in a double. One with many digits is used if its first digits, and those
   * plus one, round to the same 32-bit float: the remaining digits then cannot matter.
   */
  #readNumber(): number {
    const bytes = this.#bytes
    const isNegative = bytes[this.at] === minus
    const first = isNegative ? this.at + 1 : this.at
    // Mostly a digit and a point; all others are few.
    if (!isDigit(bytes[first]!) || bytes[first + 1] !== dot) return this.#readAny()
    let at = first + 2
    let high = bytes[first]! - zero
    for (; isDigit(bytes[at]!) && at < first + mostTogether + 1; at++) {
      high = (high * 10 + (bytes[at]! - zero)) | 0
    }
    const middle = at
    let low = 0
    for (; isDigit(bytes[at]!) && at < first + exactDigits + 1; at++) {
      low = (low * 10 + (bytes[at]! - zero)) | 0
    }
    const last = at
    while (isDigit(bytes[at]!)) at++
    if (last === first + 2 || bytes[at] !== comma) return this.#readAny()
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
