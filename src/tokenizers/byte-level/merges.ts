import { readList, readText } from '../fields.ts'
import type { Vocabulary } from '../vocabulary.ts'

/** The rank of a pair that no merge joins; larger than every real one. */
export const NO_RANK = 0x7fffffff

/** Which pairs of symbols join to which symbol, the lowest rank first. */
export interface Merges {
  /** The rank of a pair, or `NO_RANK`. */
  rank(left: number, right: number): number
  /** The symbol that the merge of each rank makes. */
  readonly results: Int32Array
  /** The symbols that the merge of each rank joins. */
  readonly lefts: Int32Array
  readonly rights: Int32Array
}

/** Reads the merges of a BPE model, written as `"a b"` or as `["a", "b"]`. */
export function openMerges(value: unknown, vocabulary: Vocabulary): Merges {
  const list = readList(value, 'model.merges')
  const results = new Int32Array(list.length)
  const lefts = new Int32Array(list.length)
  const rights = new Int32Array(list.length)
  const bits = Math.max(4, Math.ceil(Math.log2(1.6 * list.length + 1)))
  const table = new Int32Array(3 << bits).fill(-1)
  const shift = 32 - bits
  const mask = (1 << bits) - 1
  // Most pairs have no merge; a bit set small enough for the CPU cache rules out nearly all of them.
  const seen = new Uint32Array(1 << Math.max(0, bits + 3 - 5))
  const seenShift = 32 - Math.max(5, bits + 3)
  const find = (left: number, right: number) => {
    let slot = hash(left, right) >>> shift
    while (table[3 * slot] !== -1) {
      if (table[3 * slot] === left && table[3 * slot + 1] === right) break
      slot = (slot + 1) & mask
    }
    return 3 * slot
  }
  for (let rank = 0; rank < list.length; rank++) {
    const [left, right] = readPair(list[rank], rank)
    const leftId = known(left, rank, vocabulary)
    const rightId = known(right, rank, vocabulary)
    results[rank] = known(left + right, rank, vocabulary)
    lefts[rank] = leftId
    rights[rank] = rightId
    const bit = hash(leftId, rightId) >>> seenShift
    seen[bit >>> 5]! |= 1 << (bit & 31)
    const place = find(leftId, rightId)
    table[place] = leftId
    table[place + 1] = rightId
    // A pair that is listed twice counts where it stands last, as in the reference.
    table[place + 2] = rank
  }
  const rank = (left: number, right: number) => {
    const sum = hash(left, right)
    const bit = sum >>> seenShift
    if (((seen[bit >>> 5]! >>> (bit & 31)) & 1) === 0) return NO_RANK
    let slot = sum >>> shift
    while (true) {
      const found = table[3 * slot]
      if (found === left && table[3 * slot + 1] === right) return table[3 * slot + 2]!
      if (found === -1) return NO_RANK
      slot = (slot + 1) & mask
    }
  }
  return { rank, results, lefts, rights }
}

function hash(left: number, right: number): number {
  return Math.imul(Math.imul(left, 0x9e3779b1) ^ right, 0x85ebca6b)
}

function readPair(value: unknown, rank: number): readonly [string, string] {
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
