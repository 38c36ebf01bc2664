import type { IdBuffer } from '../buffers.ts'
import type { Vocabulary } from '../vocabulary.ts'
import { fromBytes, unitOfByte } from './byte-alphabet.ts'
import { Characters } from './characters.ts'
import { type JoinWork, join } from './joiner.ts'
import { type Merges, NO_RANK } from './merges.ts'
import { LONGEST_CACHED, PieceCache } from './piece-cache.ts'

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

/** The character table pays off only after this many units: a few quotation marks are not worth building it. */
const ENOUGH_WIDE = 2000

/** Words that end in a unit from here on are mostly of characters outside ASCII; Latin ones are not. */
const FIRST_WIDE = 0x370

/** Byte pair encoding over UTF-8, piece by piece, with a cache of the ids of earlier pieces. */
export class BytePairs {
  readonly #options: BytePairOptions
  readonly #ids: IdBuffer
  readonly #idOfByte: Int32Array
  readonly #byteRanks: Int32Array
  readonly #cache = new PieceCache()
  readonly #scratch = openWork(SCRATCH)
  #characters: Characters | undefined
  /** Units so far that could have been encoded from characters. */
  #wide = 0

  /** Whatever is encoded is added to `ids`. */
  constructor(options: BytePairOptions, ids: IdBuffer) {
    this.#options = options
    this.#ids = ids
    this.#idOfByte = byteIds(options.vocabulary)
    this.#byteRanks = byteRanks(this.#idOfByte, options.merges)
  }

  /** Encodes the UTF-16 units from `start` to `end`, which must be well formed. */
  encode(units: Uint16Array, start: number, end: number): void {
    const length = end - start
    if (length === 1 && units[start]! < 0x80) {
      const id = this.#idOfByte[units[start]!]!
      if (id >= 0) this.#ids.push(id)
    } else if (length > LONGEST_CACHED) {
      this.#encodeNew(units, start, end)
    } else {
      const place = this.#cache.find(units, start, end)
      if (place > 0) this.#cache.addTo(this.#ids, place)
      else {
        const before = this.#ids.length
        this.#encodeNew(units, start, end)
        this.#cache.remember(units, this.#ids, this.#ids.length - before)
      }
    }
  }

  #encodeNew(units: Uint16Array, start: number, end: number): void {
    const most = 3 * (end - start)
    const work = most <= SCRATCH ? this.#scratch : openWork(most)
    const { ignoreMerges } = this.#options
    const characters = ignoreMerges ? undefined : this.#charactersFor(units, start, end)
    if (characters) {
      const count = characters.toSymbols(units, start, end, work.symbols)
      this.#addJoined(work, this.#rankAll(work, count))
      return
    }
    const byteCount = toUtf8(units, { start, end }, work.bytes)
    if (ignoreMerges && this.#addWhole(work.bytes.subarray(0, byteCount))) return
    this.#addJoined(work, this.#toSymbols(work, byteCount))
  }

  /** Joins the first symbols and adds what comes of it. */
  #addJoined(work: Work, symbols: number): void {
    const count = join(work, symbols, this.#options.merges)
    this.#ids.reserve(count)
    for (let at = 0; at < count; at++) this.#ids.ids[this.#ids.length++] = work.symbols[at]!
  }

  /** The characters to begin with instead of bytes, where that is worth it. */
  #charactersFor(units: Uint16Array, start: number, end: number): Characters | undefined {
    if (units[end - 1]! < FIRST_WIDE) return undefined
    this.#wide += end - start
    if (this.#wide < ENOUGH_WIDE) return undefined
    const { merges, vocabulary } = this.#options
    this.#characters ??= new Characters(this.#idOfByte, merges, vocabulary.size)
    return this.#characters.isKnown ? this.#characters : undefined
  }

  /** Looks up the rank of every pair of the first symbols, and answers how many symbols they are. */
  #rankAll({ symbols, ranks }: Work, count: number): number {
    const { merges } = this.#options
    for (let at = 0; at < count - 1; at++) ranks[at] = merges.rank(symbols[at]!, symbols[at + 1]!)
    return count
  }

  #addWhole(bytes: Uint8Array): boolean {
    const id = this.#options.vocabulary.idOf(fromBytes(bytes))
    if (id === undefined || this.#options.isForbidden(id)) return false
    this.#ids.push(id)
    return true
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

function openWork(length: number): Work {
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
  return Int32Array.from({ length: 0x10000 }, (_, pair) => {
    const left = idOfByte[pair >> 8]!
    const right = idOfByte[pair & 0xff]!
    return left < 0 || right < 0 ? NO_RANK : merges.rank(left, right)
  })
}

/** Writes well-formed UTF-16 as UTF-8 and answers the count of bytes. */
function toUtf8(
  units: Uint16Array,
  { start, end }: { readonly start: number; readonly end: number },
  bytes: Uint8Array,
): number {
  let count = 0
  for (let at = start; at < end; at++) {
    const unit = units[at]!
    if (unit < 0x80) bytes[count++] = unit
    else if (unit < 0x800) {
      bytes[count++] = 0xc0 | (unit >> 6)
      bytes[count++] = 0x80 | (unit & 0x3f)
    } else if (unit < 0xd800 || unit > 0xdfff) {
      bytes[count++] = 0xe0 | (unit >> 12)
      bytes[count++] = 0x80 | ((unit >> 6) & 0x3f)
      bytes[count++] = 0x80 | (unit & 0x3f)
    } else {
      const point = ((unit - 0xd800) << 10) + (units[++at]! - 0xdc00) + 0x10000
      bytes[count++] = 0xf0 | (point >> 18)
      bytes[count++] = 0x80 | ((point >> 12) & 0x3f)
      bytes[count++] = 0x80 | ((point >> 6) & 0x3f)
      bytes[count++] = 0x80 | (point & 0x3f)
    }
  }
  return count
}
