/** Collects what comes and passes it on together, one batch at a time. */
export interface Batch<Item> {
  add(item: Item): void
  /** Resolves when everything that was added is passed on. */
  flushed(): Promise<void>
}

/** How a batch is passed on. */
export interface BatchOptions<Item> {
  /** How large a batch may be; one that is larger by itself goes alone. */
  readonly most: number
  /** @default every item counts as 1 */
  readonly size?: (item: Item) => number
  /** What an item is about: two items about the same thing never share a batch, and keep their order. */
  readonly about: (item: Item) => string
  /** Called when something could not be passed on. */
  readonly onError: (error: unknown) => void
}

/** Opens a batch. */
export function makeBatch<Item>(
  pass: (items: readonly Item[]) => Promise<void>,
  { most, size = () => 1, about, onError }: BatchOptions<Item>,
): Batch<Item> {
  const waiting: Item[] = []
  let passing: Promise<void> | undefined

  function next(): readonly Item[] {
    const names = new Set<string>()
    let left = most
    for (const item of waiting) {
      const name = about(item)
      left -= size(item)
      if (names.has(name) || (left < 0 && names.size > 0)) break
      names.add(name)
    }
    return waiting.splice(0, names.size)
  }
  async function run(): Promise<void> {
    // Items added in the same turn of the event loop go into this batch.
    await Promise.resolve()
    while (waiting.length > 0) await pass(next())
  }
  return {
    add(item) {
      waiting.push(item)
      passing ??= run()
        .catch(onError)
        .finally(() => {
          passing = undefined
        })
    },
    async flushed() {
      while (passing) await passing
    },
  }
}
