/** Things that are passed on together, so that each bears a small part of what passing costs. */
export interface Gathering<Thing> {
  /** Passes it on when this turn of the event loop is over, or a moment after the last ones were. */
  add(thing: Thing): void
  /** Passes on what is here without waiting for more; resolves when that is done. */
  flush(): Promise<void>
}

/** Opens a gathering whose things are passed on so many milliseconds apart. */
export function makeGathering<Thing>(
  apart: number,
  pass: (things: readonly Thing[]) => Promise<void>,
): Gathering<Thing> {
  let things: Thing[] = []
  let isWaiting = false
  let begin: (() => void) | undefined
  let last = Number.NEGATIVE_INFINITY
  let latest: Promise<void> | undefined

  async function passLater(): Promise<void> {
    await new Promise<void>(resolve => {
      const left = apart - (performance.now() - last)
      const timer = left > 0 ? setTimeout(resolve, left) : undefined
      if (!timer) setImmediate(resolve)
      begin = () => {
        clearTimeout(timer)
        resolve()
      }
    })
    isWaiting = false
    last = performance.now()
    const gathered = things
    things = []
    await pass(gathered)
  }
  return {
    add(thing) {
      things.push(thing)
      if (isWaiting) return
      isWaiting = true
      latest = passLater()
    },
    async flush() {
      if (isWaiting) begin?.()
      await latest
    },
  }
}
