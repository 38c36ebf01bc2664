/** Counts words; past `most` different ones the rest is counted together. */
export interface Counter {
  add(word: string, count?: number): void
  /** The most frequent first. */
  entries(): readonly (readonly [string, number])[]
  record(): Readonly<Record<string, number>>
}

const rest = 'others'

/** Opens a counter that cannot grow without end. */
export function makeCounter(most = 1000): Counter {
  return new WordCounter(most)
}

const nothing: readonly (readonly [string, number])[] = []

/** A class, because several are made for every group, and most of them count nothing. */
class WordCounter implements Counter {
  private readonly most: number
  private counts: Map<string, number> | undefined

  constructor(most: number) {
    this.most = most
  }

  add(word: string, count = 1): void {
    this.counts ??= new Map()
    const { counts, most } = this
    const key = counts.has(word) || counts.size < most ? word : rest
    counts.set(key, (counts.get(key) ?? 0) + count)
  }

  entries(): readonly (readonly [string, number])[] {
    if (!this.counts) return nothing
    return [...this.counts].sort((a, b) => b[1] - a[1] || (a[0] < b[0] ? -1 : 1))
  }

  record(): Readonly<Record<string, number>> {
    return Object.fromEntries(this.entries())
  }
}

/** A trajectory that took long. */
export interface Slow {
  readonly trajectory: string
  readonly seconds: number
  readonly turns: number
  readonly sampled: number
}

/** Keeps the slowest of all that it is shown, the slowest first; `add` tells whether it keeps this one for now. */
export interface Slowest {
  add(slow: Slow): boolean
  list(): readonly Slow[]
}

/** Opens a list of so many. @default as many as a report tells */
export function makeSlowest(count = 10): Slowest {
  let slowest: Slow[] = []
  return {
    add(slow) {
      if (slowest.length === count && slow.seconds <= slowest.at(-1)!.seconds) return false
      slowest = [...slowest, slow].sort((a, b) => b.seconds - a.seconds).slice(0, count)
      return true
    },
    list: () => slowest,
  }
}
