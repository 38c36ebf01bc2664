// Characters outside ASCII are symbols from the beginning instead of two or three bytes. That is exact
// for a character if four conditions hold: its bytes join to one symbol; each of these joins has a higher rank
// than the one before; no merge that uses the symbol has a lower rank than the last of them; and none of its
// parts could have joined a neighbour before it joined the next part. Other characters are written as bytes.

import type { Meeting } from './borders.ts'
import { NO_RANK } from './borders.ts'
import type { Merges } from './merges.ts'
import { bytesOf, firstByte, isHighSurrogate, lastByte } from './utf8.ts'

/** Marks a character that must be encoded byte by byte. */
const APART = -1

/** By symbol: the lowest rank at which it joins a neighbour that begins or ends with each byte. */
type Neighbours = Map<number, Int32Array>

/** Knows which characters can be symbols from the beginning. */
export class Characters {
  readonly #idOfByte: Int32Array
  readonly #merges: Merges
  /** For parts of characters that begin one: the last bytes of what could join them from the left. */
  readonly #before: Neighbours
  /** For parts of characters that end one: the first bytes of what they could join to the right. */
  readonly #after: Neighbours
  /** One more than the symbol of each character of one unit; 0 before it is looked up. */
  readonly #symbols = new Int32Array(0x10000)
  /** Which set of `#sets` has the bytes that may not stand before a character, and after it. */
  readonly #setBefore = new Uint16Array(0x10000)
  readonly #setAfter = new Uint16Array(0x10000)
  readonly #sets: Uint8Array[] = [new Uint8Array(256)]

  /** The vocabulary must have a symbol for every byte. */
  constructor(idOfByte: Int32Array, merges: Merges) {
    this.#idOfByte = idOfByte
    this.#merges = merges
    this.#before = gather(merges.borders.before)
    this.#after = gather(merges.borders.after)
  }

  /** Writes symbols for well-formed units, a character or a byte each, and answers how many. */
  toSymbols(units: Uint16Array, start: number, end: number, symbols: Int32Array): number {
    let count = 0
    let before = -1
    for (let at = start; at < end; at++) {
      const unit = units[at]!
      const symbol = this.#symbols[unit] || this.#learn(unit)
      const after = at + 1 < end ? units[at + 1]! : -1
      if (symbol !== APART && this.#isFree(unit, before, after)) symbols[count++] = symbol - 1
      else if (isHighSurrogate(unit)) count = this.#addPair(unit, units[++at]!, symbols, count)
      else count = this.#addBytes(unit, symbols, count)
      before = units[at]!
    }
    return count
  }

  /** Whether no part of a character could have joined one of its neighbours. */
  #isFree(unit: number, before: number, after: number): boolean {
    const setBefore = this.#setBefore[unit]!
    if (setBefore > 0 && before >= 0 && this.#sets[setBefore]![lastByte(before)] === 1) return false
    const setAfter = this.#setAfter[unit]!
    return setAfter === 0 || after < 0 || this.#sets[setAfter]![firstByte(after)] === 0
  }

  #addBytes(unit: number, symbols: Int32Array, count: number): number {
    let length = count
    symbols[length++] = this.#idOfByte[firstByte(unit)]!
    if (unit >= 0x800) symbols[length++] = this.#idOfByte[0x80 | ((unit >> 6) & 0x3f)]!
    if (unit >= 0x80) symbols[length++] = this.#idOfByte[lastByte(unit)]!
    return length
  }

  #addPair(high: number, low: number, symbols: Int32Array, count: number): number {
    const point = ((high - 0xd800) << 10) + (low - 0xdc00) + 0x10000
    symbols[count] = this.#idOfByte[0xf0 | (point >> 18)]!
    symbols[count + 1] = this.#idOfByte[0x80 | ((point >> 12) & 0x3f)]!
    symbols[count + 2] = this.#idOfByte[0x80 | ((point >> 6) & 0x3f)]!
    symbols[count + 3] = this.#idOfByte[0x80 | (point & 0x3f)]!
    return count + 4
  }

  /** Joins the bytes of a character and notes what its parts could have joined meanwhile. */
  #learn(unit: number): number {
    const symbols = bytesOf(unit).map(byte => this.#idOfByte[byte]!)
    const before = new Uint8Array(256)
    const after = new Uint8Array(256)
    let lastRank = -1
    let isOrdered = true
    while (symbols.length > 1) {
      const ranks = symbols.slice(1).map((right, at) => this.#merges.rank(symbols[at]!, right))
      const best = Math.min(...ranks)
      if (best === NO_RANK) break
      addBelow(before, this.#before.get(symbols[0]!), best)
      addBelow(after, this.#after.get(symbols.at(-1)!), best)
      symbols.splice(ranks.indexOf(best), 2, this.#merges.resultOf(best))
      isOrdered &&= best > lastRank
      lastRank = best
    }
    const [symbol = -1] = symbols
    const isWhole =
      symbols.length === 1 && isOrdered && this.#merges.borders.firstUse[symbol]! > lastRank
    this.#symbols[unit] = isWhole ? symbol + 1 : APART
    this.#setBefore[unit] = this.#place(before)
    this.#setAfter[unit] = this.#place(after)
    return this.#symbols[unit]!
  }

  /** The place of a set among the few that there are. */
  #place(set: Uint8Array): number {
    const found = this.#sets.findIndex(known => Buffer.compare(known, set) === 0)
    return found >= 0 ? found : this.#sets.push(set) - 1
  }
}

function gather(meetings: readonly Meeting[]): Neighbours {
  const neighbours: Neighbours = new Map()
  for (const { symbol, byte, rank } of meetings) {
    const ranks = neighbours.get(symbol) ?? new Int32Array(256).fill(NO_RANK)
    ranks[byte] = Math.min(ranks[byte]!, rank)
    neighbours.set(symbol, ranks)
  }
  return neighbours
}

/** Adds the bytes whose rank is below `limit`, at which the part is a part no more. */
function addBelow(to: Uint8Array, ranks: Int32Array | undefined, limit: number): void {
  if (!ranks) return
  for (let byte = 0; byte < ranks.length; byte++) if (ranks[byte]! < limit) to[byte] = 1
}
