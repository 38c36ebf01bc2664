import { NO_RANK } from './borders.ts'
import type { Merges } from './merges.ts'
import { PairQueue } from './pair-queue.ts'

/**
 * Up to this many symbols, looking for the best pair again and again beats keeping a queue. A place among
 * them takes this many bits.
 */
const PLACE_BITS = 6
const SHORT = 1 << PLACE_BITS

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

/**
 * Finds the best pair without a branch, as no processor can foretell which one it is: a rank with its place
 * behind it is one number, and the smallest is wanted.
 */
function joinShort({ symbols, ranks }: JoinWork, count: number, merges: Merges): number {
  let length = count
  while (length > 1) {
    let best = NO_RANK << PLACE_BITS
    for (let index = 0; index < length - 1; index++) {
      const difference = ((ranks[index]! << PLACE_BITS) | index) - best
      best = (best + (difference & (difference >> 31))) | 0
    }
    const rank = best >> PLACE_BITS
    if (rank === NO_RANK) break
    const at = best & (SHORT - 1)
    const joined = merges.resultOf(rank)
    symbols[at] = joined
    length--
    if (at > 0) ranks[at - 1] = merges.rank(symbols[at - 1]!, joined)
    if (at < length - 1) ranks[at] = merges.rank(joined, symbols[at + 2]!)
    for (let index = at + 1; index < length; index++) {
      symbols[index] = symbols[index + 1]!
      ranks[index] = ranks[index + 1]!
    }
  }
  return length
}

/** The symbols as a linked list and their pairs in a queue: near-linear however long a piece is. */
function joinLong({ symbols, ranks }: JoinWork, count: number, merges: Merges): number {
  const { next, previous } = makeLinks(count)
  const queue = new PairQueue()
  ranks[count - 1] = NO_RANK
  const add = (at: number) => {
    if (ranks[at] !== NO_RANK) queue.add(ranks[at]!, at)
  }
  for (let at = 0; at < count; at++) add(at)

  while (queue.next()) {
    const at = queue.position
    // Pairs whose symbols have been joined with others meanwhile are still in the queue.
    if (ranks[at] !== queue.rank) continue
    const joined = merges.resultOf(queue.rank)
    const before = previous[at]!
    const after = next[next[at]!]!
    ranks[next[at]!] = NO_RANK
    symbols[at] = joined
    next[at] = after
    previous[after] = at
    if (before >= 0) {
      ranks[before] = merges.rank(symbols[before]!, joined)
      add(before)
    }
    ranks[at] = after < count ? merges.rank(joined, symbols[after]!) : NO_RANK
    add(at)
  }
  let length = 0
  for (let at = 0; at < count; at = next[at]!) symbols[length++] = symbols[at]!
  return length
}

/** Neighbours by position; `previous` also has the end, so that it can be told of a new neighbour. */
function makeLinks(count: number): { readonly next: Int32Array; readonly previous: Int32Array } {
  const next = new Int32Array(count)
  const previous = new Int32Array(count + 1)
  for (let at = 0; at < count; at++) next[at] = at + 1
  for (let at = 0; at <= count; at++) previous[at] = at - 1
  return { next, previous }
}
