import { setImmediate } from 'node:timers/promises'
import type { RolloutContext } from './attempt.ts'

/** Seconds that attempts may work in one go before others, and the network, get their turn. */
const longest = 0.008

const resumed = new WeakMap<RolloutContext, number>()

/**
 * Lets the event loop turn when the attempts of a run have worked in one go for a while: thousands
 * of them that become ready together would otherwise hold it for seconds.
 */
export async function breathe(context: RolloutContext): Promise<void> {
  while (context.clock() - (resumed.get(context) ?? Number.NEGATIVE_INFINITY) > longest) {
    await setImmediate()
    // Whoever comes first after the loop has turned starts the next stretch for all.
    const now = context.clock()
    if (now - (resumed.get(context) ?? Number.NEGATIVE_INFINITY) > longest)
      resumed.set(context, now)
  }
}
