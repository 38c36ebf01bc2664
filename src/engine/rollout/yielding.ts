/** Seconds that attempts may work without a break before others, and the network, get their turn. */
const longest = 0.008
/** How many waiting attempts go on in one turn of the event loop: the fewest, and the number at first. */
const [fewest, first] = [4, 16]

/** How the attempts of a run share the event loop. */
export interface Yielding {
  /**
   * A promise to await if attempts have worked without a break for too long; else undefined. Thousands
   * that become ready together would otherwise hold the event loop for seconds.
   */
  whenDue(): Promise<void> | undefined
}

/** Opens the yielding of a run's attempts; `clock` gives seconds. */
export function makeYielding(clock: () => number): Yielding {
  /** When the event loop last turned for them. */
  let since = Number.NEGATIVE_INFINITY
  const waiting: (() => void)[] = []
  /**
   * How many go on in the next turn. An attempt works only after all of them were released, so this
   * number follows how long the previous turn took.
   */
  let most = first
  let isNext = false
  const turn = (): void => {
    const now = clock()
    const took = now - since
    if (isNext && took > longest) most = Math.max(fewest, most >> 1)
    else if (isNext && took < longest / 2) most = Math.min(2 * most, waiting.length + first)
    since = now
    for (const goOn of waiting.splice(0, most)) goOn()
    isNext = waiting.length > 0
    if (isNext) setImmediate(turn)
  }
  return {
    whenDue() {
      if (waiting.length === 0 && clock() - since <= longest) return undefined
      return new Promise(resolve => {
        if (waiting.push(resolve) === 1) setImmediate(turn)
      })
    },
  }
}
