// Scripts with three-byte characters are encoded starting from characters instead of bytes, which are a third
// of the symbols. That is exact if three conditions hold, which are checked for each character: its bytes join
// to one symbol; no merge uses that symbol before the last of those joins; and none of its parts could join a
// neighbour before that.

import { type Merges, NO_RANK } from './merges.ts'
import { isContinuation, type SymbolEnds, symbolEnds } from './spans.ts'

/** Marks a character that must be encoded byte by byte. */
const APART = -1

/** The sets of bytes that neighbours may not have, by the symbol that could join them. */
type ByteSets = Map<number, Uint8Array>

/** Knows which characters can be symbols from the beginning. */
export class Characters {
  readonly #idOfByte: Int32Array
  readonly #merges: Merges
  /** The lowest rank at which a symbol takes part in a merge. */
  readonly #firstUse: Int32Array
  /** For parts of characters that begin one: the last bytes of what could join them from the left. */
  readonly #before: ByteSets = new Map()
  /** For parts of characters that end one: the first bytes of what they could join to the right. */
  readonly #after: ByteSets = new Map()
  readonly #isKnown: boolean
  /** One more than the symbol of each character of one unit; 0 before it is looked up. */
  readonly #symbols = new Int32Array(0x10000)
  /** Which set of `#sets` forbids the byte before a character, and the byte after it. */
  readonly #setBefore = new Uint16Array(0x10000)
  readonly #setAfter = new Uint16Array(0x10000)
  readonly #sets: Uint8Array[] = [new Uint8Array(256)]

  constructor(idOfByte: Int32Array, merges: Merges, size: number) {
    this.#idOfByte = idOfByte
    this.#merges = merges
    this.#firstUse = new Int32Array(size).fill(NO_RANK)
    const ends = symbolEnds(idOfByte, merges, size)
    this.#isKnown = ends !== undefined
    if (ends) this.#readMerges(ends)
  }

  /** Writes a symbol for every unit and answers true, or false where bytes have to be used. */
  toSymbols(units: Uint16Array, start: number, end: number, symbols: Int32Array): boolean {
    if (!this.#isKnown) return false
    let before = -1
    for (let at = start; at < end; at++) {
      const unit = units[at]!
      const symbol = this.#symbols[unit] || this.#learn(unit)
      if (symbol === APART) return false
      if (before >= 0) {
        if (this.#sets[this.#setBefore[unit]!]![lastByte(before)] === 1) return false
        if (this.#sets[this.#setAfter[before]!]![firstByte(unit)] === 1) return false
      }
      symbols[at - start] = symbol - 1
      before = unit
    }
    return true
  }

  #readMerges({ first, last, missing }: SymbolEnds): void {
    const { lefts, rights, results } = this.#merges
    for (let rank = results.length - 1; rank >= 0; rank--) {
      const left = lefts[rank]!
      const right = rights[rank]!
      this.#firstUse[left] = rank
      this.#firstUse[right] = rank
      if (isContinuation(first[right]!)) continue
      if (missing[right]! > 0) setOf(this.#before, right)[last[left]!] = 1
      if (isContinuation(first[left]!)) setOf(this.#after, left)[first[right]!] = 1
    }
  }

  /** Joins the bytes of a character and notes what its parts could have joined meanwhile. */
  #learn(unit: number): number {
    const symbols = bytesOf(unit).map(byte => this.#idOfByte[byte]!)
    const before = new Uint8Array(256)
    const after = new Uint8Array(256)
    let lastRank = -1
    while (symbols.length > 1 && !symbols.includes(-1)) {
      addSet(before, this.#before.get(symbols[0]!))
      addSet(after, this.#after.get(symbols.at(-1)!))
      const ranks = symbols.slice(1).map((right, at) => this.#merges.rank(symbols[at]!, right))
      const best = Math.min(...ranks)
      if (best === NO_RANK) break
      symbols.splice(ranks.indexOf(best), 2, this.#merges.results[best]!)
      lastRank = Math.max(lastRank, best)
    }
    const [symbol = -1] = symbols
    const isWhole = symbols.length === 1 && symbol >= 0 && this.#firstUse[symbol]! > lastRank
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

function setOf(sets: ByteSets, symbol: number): Uint8Array {
  const known = sets.get(symbol)
  if (known) return known
  const made = new Uint8Array(256)
  sets.set(symbol, made)
  return made
}

function addSet(to: Uint8Array, set: Uint8Array | undefined): void {
  set?.forEach((isIn, byte) => {
    if (isIn === 1) to[byte] = 1
  })
}

/** The UTF-8 of a unit; half of a pair has none. */
function bytesOf(unit: number): number[] {
  if (unit < 0x80) return [unit]
  if (unit >= 0xd800 && unit <= 0xdfff) return []
  const last = lastByte(unit)
  return unit < 0x800
    ? [firstByte(unit), last]
    : [firstByte(unit), 0x80 | ((unit >> 6) & 0x3f), last]
}

function firstByte(unit: number): number {
  return unit < 0x80 ? unit : unit < 0x800 ? 0xc0 | (unit >> 6) : 0xe0 | (unit >> 12)
}

function lastByte(unit: number): number {
  return unit < 0x80 ? unit : 0x80 | (unit & 0x3f)
}
