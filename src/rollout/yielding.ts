import { setImmediate } from 'node:timers/promises'

/** Seconds that attempts may work in one go before others, and the network, get their turn. */
const longest = 0.008

/** How the attempts of a run share the event loop. */
export interface Yielding {
  /**
   * Something to wait for where attempts have worked in one go for a while; else nothing. Thousands
   * that become ready together would otherwise hold the event loop for seconds.
   */
  whenDue(): Promise<void> | undefined
}

/** Opens what all attempts of a run yield through; `clock` gives seconds. */
export function openYielding(clock: () => number): Yielding {
  /** When the event loop last turned for them. */
  let since = Number.NEGATIVE_INFINITY
  /** Until when those that stopped wait together. */
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
