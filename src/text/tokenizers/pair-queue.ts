/**
 * Positions of pairs by rank, the lowest rank first and within it from left to right. A long text has
 * many pairs but few ranks at a time: this beats a heap of pairs by far.
 */
export class PairQueue {
  readonly #buckets = new Map<number, number[]>()
  /** A binary heap of the ranks that have a bucket, the smallest on top. */
  readonly #ranks: number[] = []

  add(rank: number, position: number): void {
    const bucket = this.#buckets.get(rank)
    if (bucket !== undefined) bucket.push(position)
    else {
      this.#buckets.set(rank, [position])
      this.#raise(rank)
    }
  }

  /** Takes out all positions of the lowest rank; undefined when none is left. */
  take(): { readonly rank: number; readonly positions: Int32Array } | undefined {
    const rank = this.#ranks[0]
    if (rank === undefined) return undefined
    const last = this.#ranks.pop()!
    if (this.#ranks.length > 0) this.#sink(last)
    const positions = Int32Array.from(this.#buckets.get(rank)!)
    this.#buckets.delete(rank)
    return { rank, positions: isAscending(positions) ? positions : positions.sort() }
  }

  #raise(rank: number): void {
    let at = this.#ranks.length
    while (at > 0) {
      const parent = (at - 1) >> 1
      if (this.#ranks[parent]! <= rank) break
      this.#ranks[at] = this.#ranks[parent]!
      at = parent
    }
    this.#ranks[at] = rank
  }

  #sink(rank: number): void {
    const { length } = this.#ranks
    let at = 0
    for (let child = 1; child < length; child = 2 * at + 1) {
      if (child + 1 < length && this.#ranks[child + 1]! < this.#ranks[child]!) child++
      if (this.#ranks[child]! >= rank) break
      this.#ranks[at] = this.#ranks[child]!
      at = child
    }
    this.#ranks[at] = rank
  }
}

function isAscending(positions: Int32Array): boolean {
  for (let at = 1; at < positions.length; at++) {
    if (positions[at - 1]! > positions[at]!) return false
  }
  return true
}
