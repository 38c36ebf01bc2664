/** So many go at once; with more, the other side would be without work meanwhile. */
const together = 8

/**
 * Opens the way to another thread. Waking it costs more than an item does, so a few go together;
 * none waits longer than this turn of the event loop.
 */
export function openOutbox<T>(post: (items: readonly T[]) => void): (item: T) => void {
  let items: T[] = []

  function flush(): void {
    if (items.length === 0) return
    const sent = items
    items = []
    post(sent)
  }

  return item => {
    if (items.length === 0) setImmediate(flush)
    if (items.push(item) >= together) flush()
  }
}
