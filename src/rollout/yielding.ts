import { setImmediate } from 'node:timers/promises'

/** Seconds that attempts may work without a break before others, and the network, get their turn. */
const longest = 0.008

/** How the attempts of a run share the event loop. */
export interface Yielding {
  /**
   * A promise to await if attempts have worked without a break for too long; else undefined. Thousands
   * that become ready together would otherwise hold the event loop for seconds.
   */
  whenDue(): Promise<void> | undefined
}

/** Opens the yielding of a run's attempts; `clock` gives seconds. */
export function openYielding(clock: () => number): Yielding {
  /** When the event loop last turned for them. */
  let since = Number.NEGATIVE_INFINITY
  /** The promise that all waiting attempts share. */
  let turn: Promise<void> | undefined
  const isDue = (): boolean => clock() - since > longest
  const wait = async (): Promise<void> => {
    do {
      turn ??= setImmediate().then(() => {
        turn = undefined
        since = clock()
      })
      await turn
    } while (isDue())
  }
  return { whenDue: () => (isDue() ? wait() : undefined) }
}
