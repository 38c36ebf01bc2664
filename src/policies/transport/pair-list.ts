import {
  type ByteScanner,
  closing,
  comma,
  dot,
  exactDigits,
  minus,
  mostTogether,
  opening,
  powers,
  zero,
} from './byte-scanner.ts'
import { isId, isLogprob } from './reading.ts'

/** Tokens that were read from an answer's text. */
export interface Tokens {
  readonly ids: Int32Array
  readonly logprobs: Float32Array
}

/**
 * Reads a list `[[log-probability, id, null], …]` up to the bracket that closes it. Undefined if it does not have
 * exactly this form: the answer is then read as ordinary JSON, with the same result.
 */
export function readPairs(scanner: ByteScanner): Tokens | undefined {
  const count = keepPairs(scanner)
  return count === undefined ? undefined : copyPairs(count)
}

/** Buffers for pairs until their number is known: ids, and their log-probabilities. */
let keptIds = new Int32Array(1024)
let keptLogprobs = new Float32Array(1024)

function growKept(): void {
  const [shortIds, shortLogprobs] = [keptIds, keptLogprobs]
  keptIds = new Int32Array(shortIds.length * 2)
  keptLogprobs = new Float32Array(shortIds.length * 2)
  keptIds.set(shortIds)
  keptLogprobs.set(shortLogprobs)
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

/** What follows the id of a pair. */
const pairEnd = Buffer.from(',null]')

/** Keeps pairs up to the bracket that closes their list; gives their count. */
function keepPairs(scanner: ByteScanner): number | undefined {
  let count = keepPlainPairs(scanner)
  for (; scanner.byte !== closing; count++) {
    if (count > 0 && scanner.next() !== comma) return undefined
    if (!keepAnyPair(scanner, count)) return undefined
  }
  return count
}

/** Keeps a pair in any of JSON's forms; whether it is one. */
function keepAnyPair(scanner: ByteScanner, index: number): boolean {
  if (index === keptIds.length) growKept()
  if (scanner.next() !== opening) return false
  const logprob = scanner.readNumber()
  if (!isLogprob(logprob) || scanner.next() !== comma) return false
  const id = scanner.readId()
  if (!isId(id) || !scanner.passes(pairEnd)) return false
  keptIds[index] = id
  keptLogprobs[index] = logprob
  return true
}

/**
 * Keeps the pairs with which a list begins as far as they are written as nearly all are, `[-D.DDD,DDD,null]`; goes past
 * them and gives their count, as `ByteScanner` would number by number: calls and fields between the bytes take three
 * times as long as the bytes.
 */
function keepPlainPairs(scanner: ByteScanner): number {
  const { bytes } = scanner
  let count = 0
  for (let at = scanner.at; count < keptIds.length; at++) {
    const first = at + 2
    let digit = bytes[first]! - zero
    if (bytes[at] !== opening || bytes[at + 1] !== minus || !(digit >= 0 && digit <= 9)) break
    if (bytes[first + 1] !== dot) break
    let high = digit
    at = first + 2
    for (const stop = first + mostTogether + 1; at < stop; at++) {
      digit = bytes[at]! - zero
      if (!(digit >= 0 && digit <= 9)) break
      high = (high * 10 + digit) | 0
    }
    const middle = at
    let low = 0
    for (const stop = first + exactDigits + 1; at < stop; at++) {
      digit = bytes[at]! - zero
      if (!(digit >= 0 && digit <= 9)) break
      low = (low * 10 + digit) | 0
    }
    const last = at
    while (bytes[at]! >= zero && bytes[at]! <= zero + 9) at++
    const mantissa = high * powers[last - middle]! + low
    const power = powers[last - first - 2]!
    const value = mantissa / power
    // Further digits cannot matter where these, and these plus one, are the same 32-bit float.
    const isSure = at === last || Math.fround(value) === Math.fround((mantissa + 1) / power)
    if (last === first + 2 || !isSure || bytes[at] !== comma) break
    const from = ++at
    let id = 0
    for (const stop = from + mostTogether; at < stop; at++) {
      digit = bytes[at]! - zero
      if (!(digit >= 0 && digit <= 9)) break
      id = (id * 10 + digit) | 0
    }
    const isId = at === from + 1 || (at > from && bytes[from] !== zero)
    if (!isId || !endsPair(bytes, at)) break
    keptIds[count] = id
    keptLogprobs[count++] = -value
    at += pairEnd.length
    scanner.at = at
    if (bytes[at] !== comma) break
  }
  return count
}

function endsPair(bytes: Buffer, at: number): boolean {
  return (
    bytes[at] === comma &&
    bytes[at + 1] === pairEnd[1] &&
    bytes[at + 2] === pairEnd[2] &&
    bytes[at + 3] === pairEnd[3] &&
    bytes[at + 4] === pairEnd[4] &&
    bytes[at + 5] === closing
  )
}
