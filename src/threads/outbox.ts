/** When what was collected goes. */
export interface OutboxOptions {
  /** So many go at once; with more, the other side would be without work meanwhile. @default 8 */
  readonly together?: number
  /** Calls back when the rest goes. @default at the end of this turn of the event loop */
  readonly later?: (flush: () => void) => void
}

/** Opens the way to another thread: waking it costs more than an item does, so a few go together. */
export function openOutbox<T>(
  post: (items: readonly T[]) => void,
  { together = 8, later = setImmediate }: OutboxOptions = {},
): (item: T) => void {
  let items: T[] = []

  function flush(): void {
    if (items.length === 0) return
    const sent = items
    items = []
    post(sent)
  }

  return item => {
    if (items.length === 0) later(flush)
    if (items.push(item) >= together) flush()
  }
}
