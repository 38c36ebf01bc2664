const fewest = 8

/**
 * Things by whole number, for what comes and goes with every request. It does what a `Map` does, except that V8
 * leaves a chain of tables behind a `Map` whose entries change all the time: each table that was replaced points to
 * the next one, so that as soon as one is in the old generation, all later ones and everything that they held
 * survive until a full collection.
 */
export class NumberMap<T extends object> {
  #numbers: number[] = new Array(fewest).fill(0)
  #things: (T | undefined)[] = new Array(fewest).fill(undefined)
  #size = 0

  get size(): number {
    return this.#size
  }

  get(number: number): T | undefined {
    return this.#things[this.#placeOf(number)]
  }

  set(number: number, thing: T): void {
    const place = this.#placeOf(number)
    if (this.#things[place] === undefined) this.#size++
    this.#numbers[place] = number
    this.#things[place] = thing
    // Half full at most, so that searching ends soon.
    if (this.#size * 2 > this.#things.length) this.#grow()
  }

  /** Removes what has this number, and gives it. */
  take(number: number): T | undefined {
    const place = this.#placeOf(number)
    const found = this.#things[place]
    if (found === undefined) return undefined
    this.#size--
    this.#things[place] = undefined
    this.#closeGap(place)
    return found
  }

  /** All numbers, the smallest first. */
  numbers(): readonly number[] {
    return this.#numbers
      .filter((_, place) => this.#things[place] !== undefined)
      .sort((a, b) => a - b)
  }

  /** Where the number is, or where it would go. */
  #placeOf(number: number): number {
    const last = this.#things.length - 1
    let place = this.#homeOf(number)
    while (this.#things[place] !== undefined && this.#numbers[place] !== number) {
      place = (place + 1) & last
    }
    return place
  }

  /** Where a number is looked for first: neighbours, which are mostly open together, lie far apart. */
  #homeOf(number: number): number {
    return Math.imul(number, 0x9e3779b1) >>> (Math.clz32(this.#things.length) + 1)
  }

  /** Moves what stands behind an emptied place, if a search would not get past the gap otherwise. */
  #closeGap(emptied: number): void {
    const last = this.#things.length - 1
    let gap = emptied
    for (let at = (gap + 1) & last; this.#things[at] !== undefined; at = (at + 1) & last) {
      const number = this.#numbers[at]!
      const isBefore = ((at - this.#homeOf(number)) & last) < ((at - gap) & last)
      if (isBefore) continue
      this.#numbers[gap] = number
      this.#things[gap] = this.#things[at]
      this.#things[at] = undefined
      gap = at
    }
  }

  #grow(): void {
    const [numbers, things] = [this.#numbers, this.#things]
    this.#numbers = new Array(things.length * 2).fill(0)
    this.#things = new Array(things.length * 2).fill(undefined)
    this.#size = 0
    things.forEach((thing, place) => {
      if (thing !== undefined) this.set(numbers[place]!, thing)
    })
  }
}
