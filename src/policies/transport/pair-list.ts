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
 * Takes the list `"name":[[log-probability, id, null], …]` out of the text of an answer. Such a list
 * is most of an answer, and reading it straight into typed arrays costs a third of parsing it as
 * JSON. Undefined if the list does not have exactly this form or occurs twice: the answer is then
 * read as ordinary JSON, with the same result.
 */
export function takePairs(text: string, name: string): TakenPairs | undefined {
  const key = `"${name}":[`
  const found = text.indexOf(key)
  if (found < 0) return undefined
  const open = found + key.length
  const scanner = new Scanner(text, open)
  const count = scanner.readPairs()
  if (count === undefined || text.includes(key, scanner.at)) return undefined
  return { ...copyPairs(count), rest: text.slice(0, open) + text.slice(scanner.at) }
}

/** Buffers for pairs until their number is known: ids, and their log-probabilities. */
let ids = new Int32Array(1024)
let logprobs = new Float32Array(1024)

function keepPair(index: number, id: number, logprob: number): void {
  if (index === ids.length) {
    const [shortIds, shortLogprobs] = [ids, logprobs]
    ids = new Int32Array(index * 2)
    logprobs = new Float32Array(index * 2)
    ids.set(shortIds)
    logprobs.set(shortLogprobs)
  }
  ids[index] = id
  logprobs[index] = logprob
}

/** The pairs that were kept, in one piece of memory of their own. */
function copyPairs(count: number): Tokens {
  const memory = new ArrayBuffer(count * 8)
  const copy = {
    ids: new Int32Array(memory, 0, count),
    logprobs: new Float32Array(memory, count * 4),
  }
  copy.ids.set(ids.subarray(0, count))
  copy.logprobs.set(logprobs.subarray(0, count))
  return copy
}

const minus = 45
const point = 46
const zero = 48
const nine = 57
const comma = 44
const opening = 91
const closing = 93
/** Up to this many digits, a double holds the digits and the power of ten exactly. */
const exactDigits = 15
const powers = Array.from({ length: 23 }, (_, exponent) => 10 ** exponent)
const anyNumber = /-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?/y

/** Reads a text from a place on, and stops where something is not as expected. */
class Scanner {
  at: number
  readonly #text: string

  constructor(text: string, at: number) {
    this.#text = text
    this.at = at
  }

  /** Keeps pairs up to the bracket that closes their list; gives their count. */
  readPairs(): number | undefined {
    const text = this.#text
    if (text.charCodeAt(this.at) === closing) return 0
    for (let count = 0; text.charCodeAt(this.at++) === opening; ) {
      const logprob = this.#readNumber()
      if (!isLogprob(logprob) || text.charCodeAt(this.at++) !== comma) return undefined
      const id = this.#readNumber()
      if (!isId(id) || !text.startsWith(',null]', this.at)) return undefined
      keepPair(count++, id, logprob)
      this.at += ',null]'.length
      const next = text.charCodeAt(this.at)
      if (next === closing) return count
      if (next !== comma) return undefined
      this.at++
    }
    return undefined
  }

  /**
   * A number as JSON writes it, NaN if there is none. One with many digits is used if its first digits,
   * and those plus one, round to the same 32-bit float: the remaining digits then cannot matter.
   */
  #readNumber(): number {
    const text = this.#text
    const isNegative = text.charCodeAt(this.at) === minus
    const first = isNegative ? this.at + 1 : this.at
    let at = first
    let mantissa = 0
    let digits = 0
    let scale = -1
    let isCut = false
    for (; ; at++) {
      const unit = text.charCodeAt(at)
      if (unit === point && scale < 0) scale = 0
      else if (!(unit >= zero && unit <= nine)) break
      else if (digits < exactDigits) {
        mantissa = mantissa * 10 + (unit - zero)
        if (mantissa > 0) digits++
        if (scale >= 0) scale++
      } else if (scale >= 0) isCut = true
      else return this.#readAny()
    }
    const isPlain = text.charCodeAt(at) === comma && isWholeNumber(text, first, { scale, at })
    if (!isPlain || scale >= powers.length) return this.#readAny()
    const power = scale > 0 ? powers[scale]! : 1
    const value = mantissa / power
    if (isCut && Math.fround(value) !== Math.fround((mantissa + 1) / power)) return this.#readAny()
    this.at = at
    return isNegative ? -value : value
  }

  /** A number in any of JSON's forms. */
  #readAny(): number {
    anyNumber.lastIndex = this.at
    const [number] = anyNumber.exec(this.#text) ?? []
    if (number === undefined) return Number.NaN
    this.at += number.length
    return Number(number)
  }
}

/** Whether what was read as digits and a point is a number to JSON: "1", "0.5"; not ".5", "1." or "01". */
function isWholeNumber(
  text: string,
  first: number,
  { scale, at }: { readonly scale: number; readonly at: number },
): boolean {
  const second = text.charCodeAt(first + 1)
  if (text.charCodeAt(first) === zero && second >= zero && second <= nine) return false
  return at > first && text.charCodeAt(first) !== point && scale !== 0
}
