/** One kind of thing that a format could not carry, and how often. */
export interface Lost {
  readonly what: string
  readonly count: number
}

/** Counts what a format could not carry while it writes. */
export interface LossReport {
  add(what: string, count?: number): void
  /** Adds a note for the reader of the file, once. */
  note(what: string): void
  /** In the order of their first occurrence. */
  entries(): readonly Lost[]
  notes(): readonly string[]
}

/** Opens an empty report. */
export function makeLossReport(): LossReport {
  const counts = new Map<string, number>()
  const notes = new Set<string>()
  return {
    add(what, count = 1) {
      if (count > 0) counts.set(what, (counts.get(what) ?? 0) + count)
    },
    note: what => void notes.add(what),
    entries: () => [...counts].map(([what, count]) => ({ what, count })),
    notes: () => [...notes],
  }
}
