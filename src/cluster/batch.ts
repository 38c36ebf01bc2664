/** Collects what comes and passes it on together, one batch at a time. */
export interface Batch<Item> {
  add(item: Item): void
  /** Resolves when everything that was added is passed on. */
  flushed(): Promise<void>
}

/** Opens a batch; `onError` is told when something could not be passed on. */
export function openBatch<Item>(
  pass: (items: readonly Item[]) => Promise<void>,
  { most, onError }: { readonly most: number; readonly onError: (error: unknown) => void },
): Batch<Item> {
  const waiting: Item[] = []
  let passing: Promise<void> | undefined

  async function run(): Promise<void> {
    // What is added in the same turn of the loop goes along.
    await Promise.resolve()
    while (waiting.length > 0) await pass(waiting.splice(0, most))
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
