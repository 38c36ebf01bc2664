/** Counts words; past `most` different ones the rest is counted together. */
export interface Counter {
  add(word: string, count?: number): void
  /** The most frequent first. */
  entries(): readonly (readonly [string, number])[]
  record(): Readonly<Record<string, number>>
}

const rest = 'others'

/** Opens a counter that cannot grow without end. */
export function openCounter(most = 1000): Counter {
  const counts = new Map<string, number>()
  const entries = () => [...counts].sort((a, b) => b[1] - a[1] || (a[0] < b[0] ? -1 : 1))
  return {
    add(word, count = 1) {
      const key = counts.has(word) || counts.size < most ? word : rest
      counts.set(key, (counts.get(key) ?? 0) + count)
    },
    entries,
    record: () => Object.fromEntries(entries()),
  }
}

/** A trajectory that took long. */
export interface Slow {
  readonly trajectory: string
  readonly seconds: number
  readonly turns: number
  readonly sampled: number
}

/** Keeps the slowest of all that it is shown, the slowest first. */
export function openSlowest(count: number): { add(slow: Slow): void; list(): readonly Slow[] } {
  let slowest: Slow[] = []
  return {
    add(slow) {
      if (slowest.length === count && slow.seconds <= slowest.at(-1)!.seconds) return
      slowest = [...slowest, slow].sort((a, b) => b.seconds - a.seconds).slice(0, count)
    },
    list: () => slowest,
  }
}
