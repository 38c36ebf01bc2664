import { type Merges, NO_RANK } from './merges.ts'

/** Up to this many symbols, looking for the best pair again and again beats keeping a heap. */
const SHORT = 96

/** Positions in a heap key take 31 bits, which leaves 21 for ranks. */
const POSITIONS = 2 ** 31

/** The symbols of one piece; `ranks[i]` belongs to the pair of `symbols[i]` and `symbols[i + 1]`. */
export interface JoinWork {
  readonly symbols: Int32Array
  readonly ranks: Int32Array
}

/**
 * Byte pair encoding, in place: joins pairs until none can be, the lowest rank first and of equal
 * ranks the leftmost. Reads `count` symbols and answers how many are left.
 */
export function join(work: JoinWork, count: number, merges: Merges): number {
  return count <= SHORT ? joinShort(work, count, merges) : joinLong(work, count, merges)
}

function joinShort({ symbols, ranks }: JoinWork, count: number, merges: Merges): number {
  let length = count
  while (length > 1) {
    let best = NO_RANK
    let at = 0
    for (let index = 0; index < length - 1; index++) {
      if (ranks[index]! < best) {
        best = ranks[index]!
        at = index
      }
    }
    if (best === NO_RANK) break
    const joined = merges.results[best]!
    symbols[at] = joined
    length--
    for (let index = at + 1; index < length; index++) {
      symbols[index] = symbols[index + 1]!
      ranks[index] = ranks[index + 1]!
    }
    if (at > 0) ranks[at - 1] = merges.rank(symbols[at - 1]!, joined)
    ranks[at] = at < length - 1 ? merges.rank(joined, symbols[at + 1]!) : NO_RANK
  }
  return length
}

/** A linked list of symbols and a heap of pairs: n log n however long the piece is. */
function joinLong({ symbols, ranks }: JoinWork, count: number, merges: Merges): number {
  const links = new Links(count)
  const heap = new Heap(ranks, count - 1)
  ranks[count - 1] = NO_RANK
  while (heap.length > 0) {
    const key = heap.pop()
    const rank = Math.floor(key / POSITIONS)
    const at = key - rank * POSITIONS
    // Pairs whose symbols have been joined with others meanwhile are still in the heap.
    if (ranks[at] !== rank) continue
    const joined = merges.results[rank]!
    symbols[at] = joined
    ranks[links.next[at]!] = NO_RANK
    links.dropAfter(at)
    const before = links.previous[at]!
    const after = links.next[at]!
    if (before >= 0) {
      ranks[before] = merges.rank(symbols[before]!, joined)
      if (ranks[before] !== NO_RANK) heap.push(ranks[before]! * POSITIONS + before)
    }
    ranks[at] = after < count ? merges.rank(joined, symbols[after]!) : NO_RANK
    if (ranks[at] !== NO_RANK) heap.push(ranks[at]! * POSITIONS + at)
  }
  let length = 0
  for (let at = 0; at < count; at = links.next[at]!) symbols[length++] = symbols[at]!
  return length
}

class Links {
  readonly next: Int32Array
  /** One longer than the list, so that its end can be told of a new neighbour too. */
  readonly previous: Int32Array

  constructor(count: number) {
    this.next = new Int32Array(count)
    this.previous = new Int32Array(count + 1)
    for (let at = 0; at < count; at++) this.next[at] = at + 1
    for (let at = 0; at <= count; at++) this.previous[at] = at - 1
  }

  dropAfter(at: number): void {
    const after = this.next[this.next[at]!]!
    this.next[at] = after
    this.previous[after] = at
  }
}

/** A binary heap of rank and position in one number, the smallest on top. */
class Heap {
  length = 0
  #keys: Float64Array

  constructor(ranks: Int32Array, count: number) {
    // Each join takes one pair out and puts at most two in, and there are fewer joins than symbols.
    this.#keys = new Float64Array(2 * count + 2)
    for (let at = 0; at < count; at++) {
      if (ranks[at] !== NO_RANK) this.#keys[this.length++] = ranks[at]! * POSITIONS + at
    }
    for (let at = (this.length >> 1) - 1; at >= 0; at--) this.#sink(at, this.#keys[at]!)
  }

  push(key: number): void {
    const keys = this.#keys
    let at = this.length++
    while (at > 0) {
      const parent = (at - 1) >> 1
      if (keys[parent]! <= key) break
      keys[at] = keys[parent]!
      at = parent
    }
    keys[at] = key
  }

  pop(): number {
    const top = this.#keys[0]!
    this.length--
    if (this.length > 0) this.#sink(0, this.#keys[this.length]!)
    return top
  }

  #sink(from: number, key: number): void {
    const keys = this.#keys
    const length = this.length
    let at = from
    for (let child = 2 * at + 1; child < length; child = 2 * at + 1) {
      if (child + 1 < length && keys[child + 1]! < keys[child]!) child++
      if (keys[child]! >= key) break
      keys[at] = keys[child]!
      at = child
    }
    keys[at] = key
  }
}
