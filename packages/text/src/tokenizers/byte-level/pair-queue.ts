/**
 * Pairs of symbols by rank, the lowest first, and of equal ranks the leftmost first. A long text has
 * many pairs but few ranks at a time, and their positions mostly come in order: a list for each rank
 * beats one heap of all pairs by far.
 */
export class PairQueue {
  /** The pair that `next` has moved to. */
  rank = 0
  position = 0
  readonly #lists = new Map<number, PositionList>()
  readonly #ranks = new Heap()

  add(rank: number, position: number): void {
    const list = this.#lists.get(rank)
    if (list !== undefined) list.add(position)
    else {
      this.#lists.set(rank, new PositionList(position))
      this.#ranks.push(rank)
    }
  }

  /** Takes the next pair out; false when none is left. */
  next(): boolean {
    if (this.#ranks.length === 0) return false
    this.rank = this.#ranks.top
    const list = this.#lists.get(this.rank)!
    this.position = list.take()
    if (list.isEmpty) {
      this.#lists.delete(this.rank)
      this.#ranks.pop()
    }
    return true
  }
}

/** Positions that come in ascending order are only appended; the few others wait in a heap. */
class PositionList {
  readonly #ascending: number[]
  readonly #late = new Heap()
  #taken = 0
  #last: number

  constructor(position: number) {
    this.#ascending = [position]
    this.#last = position
  }

  get isEmpty(): boolean {
    return this.#taken === this.#ascending.length && this.#late.length === 0
  }

  add(position: number): void {
    if (position < this.#last) this.#late.push(position)
    else {
      this.#ascending.push(position)
      this.#last = position
    }
  }

  take(): number {
    const first = this.#ascending[this.#taken]
    if (this.#late.length > 0 && (first === undefined || this.#late.top < first)) {
      return this.#late.pop()
    }
    this.#taken++
    return first!
  }
}

/** A binary heap of numbers, the smallest on top. */
class Heap {
  readonly #values: number[] = []

  get length(): number {
    return this.#values.length
  }

  get top(): number {
    return this.#values[0]!
  }

  push(value: number): void {
    const values = this.#values
    let at = values.length
    values.push(value)
    while (at > 0) {
      const parent = (at - 1) >> 1
      if (values[parent]! <= value) break
      values[at] = values[parent]!
      at = parent
    }
    values[at] = value
  }

  pop(): number {
    const top = this.top
    const last = this.#values.pop()!
    if (this.#values.length > 0) this.#sink(last)
    return top
  }

  #sink(value: number): void {
    const values = this.#values
    let at = 0
    for (let child = 1; child < values.length; child = 2 * at + 1) {
      if (child + 1 < values.length && values[child + 1]! < values[child]!) child++
      if (values[child]! >= value) break
      values[at] = values[child]!
      at = child
    }
    values[at] = value
  }
}
