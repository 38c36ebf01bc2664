import { setImmediate } from 'node:timers/promises'
import type { RolloutContext } from './attempt.ts'

/** Seconds that attempts may work in one go before others, and the network, get their turn. */
const longest = 0.008

/** How the attempts of a run share the event loop. */
interface Stretch {
  /** When the loop last turned for them. */
  since: number
  /** Until when those that stopped wait together. */
  turn: Promise<void> | undefined
}

const stretches = new WeakMap<RolloutContext, Stretch>()

/**
 * Whether the attempts of a run have worked in one go for a while, and the event loop should turn:
 * thousands of them that become ready together would otherwise hold it for seconds.
 */
export function isBreathless(context: RolloutContext): boolean {
  return context.clock() - (stretches.get(context)?.since ?? Number.NEGATIVE_INFINITY) > longest
}

/** Lets the event loop turn until this attempt may work again. */
export async function breathe(context: RolloutContext): Promise<void> {
  const stretch = stretches.get(context) ?? { since: Number.NEGATIVE_INFINITY, turn: undefined }
  stretches.set(context, stretch)
  do {
    stretch.turn ??= setImmediate().then(() => {
      stretch.turn = undefined
      stretch.since = context.clock()
    })
    await stretch.turn
  } while (isBreathless(context))
}
