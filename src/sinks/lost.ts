/** One kind of thing that a format could not carry, and how often. */
export interface Lost {
  readonly what: string
  readonly count: number
}

/** Counts what a format could not carry while it writes. */
export interface LossReport {
  add(what: string, count?: number): void
  /** In the order in which each was first met. */
  entries(): readonly Lost[]
}

/** Opens an empty report. */
export function openLossReport(): LossReport {
  const counts = new Map<string, number>()
  return {
    add(what, count = 1) {
      if (count > 0) counts.set(what, (counts.get(what) ?? 0) + count)
    },
    entries: () => [...counts].map(([what, count]) => ({ what, count })),
  }
}
