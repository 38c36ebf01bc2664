/** When collected items are sent. */
export interface OutboxOptions {
  /** Items per message; with more, the other side would be idle meanwhile. @default 8 */
  readonly together?: number
  /** Schedules sending the rest. @default at the end of this turn of the event loop */
  readonly later?: (flush: () => void) => void
}

/** Sends items to another thread a few at a time: waking it costs more than an item does. */
export function makeOutbox<T>(
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
