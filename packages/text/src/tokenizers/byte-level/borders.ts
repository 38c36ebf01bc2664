import { byteOf } from './byte-alphabet.ts'
import { isContinuation } from './utf8.ts'

/** The rank of a pair that no merge joins; larger than every real one, and six bits short of a full number. */
export const NO_RANK = 0x1ffffff

/** At which rank a part of a character joins a neighbour that begins or ends with a byte. */
export interface Meeting {
  readonly symbol: number
  readonly byte: number
  readonly rank: number
}

/** Two tokens, as the vocabulary writes them. */
export type Pair = readonly [string, string]

/** A merge of two symbols. */
interface Merge {
  readonly rank: number
  readonly left: number
  readonly right: number
}

/** What merges join, told by the bytes where the two symbols meet. */
export class Borders {
  /** Parts that begin a character and lack its end, with what stands before them. */
  readonly before: Meeting[] = []
  /** Parts that end a character and lack its beginning, with what stands behind them. */
  readonly after: Meeting[] = []
  /** For symbols that are one character outside ASCII: the lowest rank at which a merge uses them. */
  readonly firstUse: Int32Array
  /** By the last byte of the left symbol and the first of the right: whether a merge joins any such. */
  readonly #joined = new Uint8Array(0x10000)

  /** Symbols are below `size`. */
  constructor(size: number) {
    this.firstUse = new Int32Array(size).fill(NO_RANK)
  }

  /**
   * Whether some merge joins a symbol that ends in the one byte with one that begins with the other. If none
   * does, what stands on both sides can be encoded apart.
   */
  canJoin(last: number, first: number): boolean {
    return this.#joined[(last << 8) | first] === 1
  }

  /** Takes note of a merge. Tokens with letters outside the alphabet of bytes are never made of bytes. */
  add([before, after]: Pair, { rank, left, right }: Merge): void {
    const last = byteOf(before.charCodeAt(before.length - 1))
    const first = byteOf(after.charCodeAt(0))
    if (last < 0 || first < 0) return
    this.#joined[(last << 8) | first] = 1
    if (isCharacter(before)) this.#use(left, rank)
    if (isCharacter(after)) this.#use(right, rank)
    if (isContinuation(first)) return
    if (lacksEnd(after)) this.before.push({ symbol: right, byte: last, rank })
    if (isContinuation(byteOf(before.charCodeAt(0)))) {
      this.after.push({ symbol: left, byte: first, rank })
    }
  }

  #use(symbol: number, rank: number): void {
    this.firstUse[symbol] = Math.min(this.firstUse[symbol]!, rank)
  }
}

/** Whether a token is as long as the character that it begins, and that is not of ASCII. */
function isCharacter(token: string): boolean {
  const first = byteOf(token.charCodeAt(0))
  return first >= 0xc0 && token.length === lengthOf(first)
}

/** Whether the bytes of a token end inside a character. */
function lacksEnd(token: string): boolean {
  for (let back = 1; back <= Math.min(3, token.length); back++) {
    const byte = byteOf(token.charCodeAt(token.length - back))
    if (!isContinuation(byte)) return byte >= 0xc0 && back < lengthOf(byte)
  }
  return false
}

/** How many bytes a character has that begins with this one. */
function lengthOf(byte: number): number {
  return byte < 0xe0 ? 2 : byte < 0xf0 ? 3 : 4
}
