import { readList, readText } from '../fields.ts'
import type { Vocabulary } from '../vocabulary.ts'
import { Borders, NO_RANK, type Pair } from './borders.ts'

/** Which pairs of symbols join to which symbol, the lowest rank first. */
export class Merges {
  /** The symbol that the merge of each rank makes, and how far above the rank it is if that is so for all. */
  readonly #results: Int32Array
  #distance = 0
  readonly borders: Borders
  /** Left, right and rank, by hash; a left of -1 is empty. */
  readonly #table: Int32Array
  readonly #shift: number
  readonly #mask: number
  /** Most pairs have no merge; a bit set small enough for the CPU cache rules out nearly all of them. */
  readonly #seen: Uint32Array
  readonly #seenShift: number

  /** Makes room for `count` merges of symbols below `size`. */
  constructor(count: number, size: number) {
    this.#results = new Int32Array(count)
    this.borders = new Borders(size)
    const bits = Math.max(4, Math.ceil(Math.log2(1.6 * count + 1)))
    this.#table = new Int32Array(3 << bits).fill(-1)
    this.#shift = 32 - bits
    this.#mask = (1 << bits) - 1
    this.#seen = new Uint32Array(1 << (bits + 3 - 5))
    this.#seenShift = 32 - (bits + 3)
  }

  /** By ascending rank. A pair that is set twice counts where it was set last, as in the reference. */
  set(rank: number, [left, right, result]: readonly [number, number, number]): void {
    this.#results[rank] = result
    if (rank === 0) this.#distance = result
    else if (result - rank !== this.#distance) this.#distance = -1
    const hash = hashOf(left, right)
    const bit = hash >>> this.#seenShift
    this.#seen[bit >>> 5]! |= 1 << (bit & 31)
    const table = this.#table
    let slot = hash >>> this.#shift
    while (table[3 * slot] !== -1) {
      if (table[3 * slot] === left && table[3 * slot + 1] === right) break
      slot = (slot + 1) & this.#mask
    }
    table[3 * slot] = left
    table[3 * slot + 1] = right
    table[3 * slot + 2] = rank
  }

  /** The symbol that a merge makes. Most vocabularies number them by rank, which needs no memory access. */
  resultOf(rank: number): number {
    return this.#distance < 0 ? this.#results[rank]! : rank + this.#distance
  }

  /** The rank of a pair, or `NO_RANK`. */
  rank(left: number, right: number): number {
    const hash = hashOf(left, right)
    const bit = hash >>> this.#seenShift
    if (((this.#seen[bit >>> 5]! >>> (bit & 31)) & 1) === 0) return NO_RANK
    const table = this.#table
    let slot = hash >>> this.#shift
    while (true) {
      const found = table[3 * slot]
      if (found === left && table[3 * slot + 1] === right) return table[3 * slot + 2]!
      if (found === -1) return NO_RANK
      slot = (slot + 1) & this.#mask
    }
  }
}

/**
 * Reads the merges of a BPE model, written as `"a b"` or as `["a", "b"]`. The second of a pair begins
 * with so many units that are dropped if the two are joined: `##` of BERT's kind.
 */
export function readMerges(value: unknown, vocabulary: Vocabulary, dropped = 0): Merges {
  const list = readList(value, 'model.merges')
  const merges = new Merges(list.length, vocabulary.size)
  for (let rank = 0; rank < list.length; rank++) {
    const pair = readPair(list[rank], rank)
    const left = known(pair[0], rank, vocabulary)
    const right = known(pair[1], rank, vocabulary)
    merges.set(rank, [left, right, known(pair[0] + pair[1].slice(dropped), rank, vocabulary)])
    merges.borders.add(pair, { rank, left, right })
  }
  return merges
}

function hashOf(left: number, right: number): number {
  return Math.imul(Math.imul(left, 0x9e3779b1) ^ right, 0x85ebca6b)
}

function readPair(value: unknown, rank: number): Pair {
  const where = `model.merges[${rank}]`
  if (typeof value === 'string') {
    const blank = value.indexOf(' ')
    if (blank > 0 && value.indexOf(' ', blank + 1) < 0) {
      return [value.slice(0, blank), value.slice(blank + 1)]
    }
  } else if (Array.isArray(value) && value.length === 2) {
    return [readText(value[0], where), readText(value[1], where)]
  }
  throw new Error(`${where} should be two tokens, but is ${JSON.stringify(value)}`)
}

function known(token: string, rank: number, vocabulary: Vocabulary): number {
  const id = vocabulary.idOf(token)
  if (id !== undefined) return id
  throw new Error(
    `model.merges[${rank}] names ${JSON.stringify(token)}, which is not in model.vocab`,
  )
}
