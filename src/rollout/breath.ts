import { setImmediate } from 'node:timers/promises'
import type { RolloutContext } from './attempt.ts'

/** Seconds that attempts may work in one go before others, and the network, get their turn. */
const longest = 0.008

const resumed = new WeakMap<RolloutContext, number>()

/**
 * Whether the attempts of a run have worked in one go for a while, and the event loop should turn:
 * thousands of them that become ready together would otherwise hold it for seconds.
 */
export function isBreathless(context: RolloutContext): boolean {
  return context.clock() - (resumed.get(context) ?? Number.NEGATIVE_INFINITY) > longest
}

/** Lets the event loop turn until this attempt may work again. */
export async function breathe(context: RolloutContext): Promise<void> {
  do {
    await setImmediate()
    // Whoever comes first after the loop has turned starts the next stretch for all.
    if (isBreathless(context)) resumed.set(context, context.clock())
  } while (isBreathless(context))
}
