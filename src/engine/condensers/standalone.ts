import { type Message, textOf } from '@espalier/text'
import type { Call } from '../../base/core/call.ts'
import type { CondenseCall } from '../../base/core/condenser.ts'
import { makeLane } from '../../base/core/lane.ts'

/** A call to a condenser outside of a rollout: an opening of so many messages, no limits, no policy. */
export function standaloneCall(
  opening: number,
  { signal, concurrency = 8 }: Call & { readonly concurrency?: number },
): CondenseCall {
  return {
    signal,
    opening,
    turn: 0,
    tokens: Number.POSITIVE_INFINITY,
    context: Number.POSITIVE_INFINITY,
    count: charactersOf,
    lane: makeLane('condenser', concurrency),
    self: {
      name: 'nobody',
      say: () => Promise.reject(new Error('there is no policy here that could condense')),
    },
  }
}

function charactersOf(messages: readonly Message[]): number {
  return messages.reduce((sum, { content }) => sum + textOf(content).length, 0)
}
