import type { Cuts, IdBuffer } from '../buffers.ts'
import type { Vocabulary } from '../vocabulary.ts'
import { NO_RANK } from './borders.ts'
import { unitOfByte } from './byte-alphabet.ts'
import { Characters } from './characters.ts'
import { type JoinWork, join } from './joiner.ts'
import type { Merges } from './merges.ts'
import { LONGEST_CACHED, PieceCache } from './piece-cache.ts'
import { firstByte, isLowSurrogate, lastByte, toUtf8 } from './utf8.ts'
import { WholeTokens } from './whole-tokens.ts'

export interface BytePairOptions {
  readonly vocabulary: Vocabulary
  readonly merges: Merges
  /** Whether a piece that is a token as a whole is that token, whatever the merges make of it. */
  readonly ignoreMerges: boolean
  /** Whether plain text must never become this id, even if `ignoreMerges` finds it. */
  isForbidden(id: number): boolean
}

/** The bytes of a piece beside its symbols. */
interface Work extends JoinWork {
  readonly bytes: Uint8Array
}

/** Room for most pieces; longer ones get room of their own, which is not kept. */
const SCRATCH = 4096

/** Words that end in a unit from here on are mostly of characters outside ASCII; Latin ones are not. */
const FIRST_WIDE = 0x370

/** Byte pair encoding over UTF-8, piece by piece, with a cache of the ids of earlier pieces. */
export class BytePairs {
  readonly #options: BytePairOptions
  readonly #ids: IdBuffer
  readonly #idOfByte: Int32Array
  readonly #byteRanks: Int32Array
  readonly #cache = new PieceCache()
  readonly #scratch = makeWork(SCRATCH)
  /** What a piece may be as a whole, with `ignoreMerges`. */
  readonly #whole: WholeTokens | undefined
  /** Whether bytes tell what symbols are: every byte has one, and no two tokens are the same one. */
  readonly #isTelling: boolean
  #characters: Characters | undefined

  /** Whatever is encoded is added to `ids`. */
  constructor(options: BytePairOptions, ids: IdBuffer) {
    this.#options = options
    this.#ids = ids
    this.#idOfByte = byteIds(options.vocabulary)
    this.#byteRanks = byteRanks(this.#idOfByte, options.merges)
    const isWanted = (id: number) => !options.isForbidden(id)
    this.#whole = options.ignoreMerges ? new WholeTokens(options.vocabulary, isWanted) : undefined
    this.#isTelling = options.vocabulary.isOneToOne && !this.#idOfByte.includes(-1)
  }

  /** Encodes pieces of UTF-16 units, one behind the other. */
  encodeAll(units: Uint16Array, pieces: Cuts): void {
    for (let index = 0; index < pieces.count; index++) {
      this.encode(units, pieces.start(index), pieces.end(index))
    }
  }

  /** Encodes the UTF-16 units from `start` to `end`, which must be well formed. */
  encode(units: Uint16Array, start: number, end: number): void {
    const length = end - start
    if (length === 1 && units[start]! < 0x80) {
      const id = this.#idOfByte[units[start]!]!
      if (id >= 0) this.#ids.push(id)
    } else if (length > LONGEST_CACHED) {
      this.#encodeLong(units, start, end)
    } else {
      this.#encodeCached(units, start, end)
    }
  }

  #encodeCached(units: Uint16Array, start: number, end: number): void {
    const place = this.#cache.find(units, start, end)
    if (place > 0) this.#cache.addTo(this.#ids, place)
    else {
      const before = this.#ids.length
      this.#encodeNew(units, start, end)
      this.#cache.remember(units, this.#ids, this.#ids.length - before)
    }
  }

  /** A long piece hardly ever comes back, but its parts between which no merge joins anything do. */
  #encodeLong(units: Uint16Array, start: number, end: number): void {
    if (this.#addWhole(units, start, end)) return
    const { borders } = this.#options.merges
    let from = start
    for (let at = start + 1; at < end; at++) {
      if (isLowSurrogate(units[at]!) || !this.#isTelling) continue
      if (borders.canJoin(lastByte(units[at - 1]!), firstByte(units[at]!))) continue
      this.#encodePart(units, from, at)
      from = at
    }
    this.#encodePart(units, from, end)
  }

  /** The cache is for whole pieces, which may have ids that parts have not: see `ignoreMerges`. */
  #encodePart(units: Uint16Array, start: number, end: number): void {
    if (end - start > LONGEST_CACHED || this.#whole) {
      this.#encodeMerged(units, start, end)
    } else this.#encodeCached(units, start, end)
  }

  #encodeNew(units: Uint16Array, start: number, end: number): void {
    if (this.#addWhole(units, start, end)) return
    this.#encodeMerged(units, start, end)
  }

  #encodeMerged(units: Uint16Array, start: number, end: number): void {
    const work = this.#workFor(end - start)
    const characters = this.#charactersFor(units[end - 1]!)
    if (characters) {
      const count = characters.toSymbols(units, start, end, work.symbols)
      this.#addJoined(work, this.#rankAll(work, count))
    } else {
      const byteCount = toUtf8(units, { start, end }, work.bytes)
      this.#addJoined(work, this.#toSymbols(work, byteCount))
    }
  }

  #workFor(length: number): Work {
    return 3 * length <= SCRATCH ? this.#scratch : makeWork(3 * length)
  }

  /** Joins the first symbols and adds what comes of it. */
  #addJoined(work: Work, symbols: number): void {
    const count = join(work, symbols, this.#options.merges)
    this.#ids.reserve(count)
    for (let at = 0; at < count; at++) this.#ids.ids[this.#ids.length++] = work.symbols[at]!
  }

  /** The characters to begin with instead of bytes, where the last unit says that it is worth it. */
  #charactersFor(last: number): Characters | undefined {
    if (last < FIRST_WIDE || isLowSurrogate(last) || !this.#isTelling) return undefined
    this.#characters ??= new Characters(this.#idOfByte, this.#options.merges)
    return this.#characters
  }

  /** Looks up the rank of every pair of the first symbols, and answers how many symbols they are. */
  #rankAll({ symbols, ranks }: Work, count: number): number {
    const { merges } = this.#options
    for (let at = 0; at < count - 1; at++) ranks[at] = merges.rank(symbols[at]!, symbols[at + 1]!)
    return count
  }

  #addWhole(units: Uint16Array, start: number, end: number): boolean {
    if (!this.#whole) return false
    const { bytes } = this.#workFor(end - start)
    const id = this.#whole.find(bytes, toUtf8(units, { start, end }, bytes))
    if (id >= 0) this.#ids.push(id)
    return id >= 0
  }

  /** A byte that the vocabulary lacks is left out and its neighbours meet, as in the reference. */
  #toSymbols({ bytes, symbols, ranks }: Work, byteCount: number): number {
    let count = 0
    let before = 0
    for (let at = 0; at < byteCount; at++) {
      const byte = bytes[at]!
      const id = this.#idOfByte[byte]!
      if (id < 0) continue
      if (count > 0) ranks[count - 1] = this.#byteRanks[(before << 8) | byte]!
      symbols[count++] = id
      before = byte
    }
    return count
  }
}

function makeWork(length: number): Work {
  return {
    bytes: new Uint8Array(length),
    symbols: new Int32Array(length),
    ranks: new Int32Array(length),
  }
}

/** The id of each byte's own token, or -1. */
function byteIds(vocabulary: Vocabulary): Int32Array {
  return Int32Array.from(unitOfByte, unit => vocabulary.idOf(String.fromCharCode(unit)) ?? -1)
}

/** The rank of each pair of bytes: every piece begins with these, so they get a table. */
function byteRanks(idOfByte: Int32Array, merges: Merges): Int32Array {
  const ranks = new Int32Array(0x10000).fill(NO_RANK)
  for (let pair = 0; pair < 0x10000; pair++) {
    const left = idOfByte[pair >> 8]!
    const right = idOfByte[pair & 0xff]!
    if (left >= 0 && right >= 0) ranks[pair] = merges.rank(left, right)
  }
  return ranks
}
