import type { Message } from '@espalier/text'
import type { CondenseCall, Condensed, Condenser, Condensing } from '../../base/core/condenser.ts'
import { trimToFit } from './trim.ts'
import { describeTurns, goneNote, leaveOutOldest, turnsOf } from './turns.ts'

/** What is kept. */
export interface KeepLastTurnsOptions {
  /** Most turns to keep. @default as many as fit */
  readonly turns?: number
}

/** Leaves out the oldest turns, with a note in their place; the last one is always kept. */
export function keepLastTurns(options: KeepLastTurnsOptions = {}): Condenser {
  const { turns: most } = options
  if (most !== undefined && !(most >= 1)) {
    throw new RangeError(`keep-last-turns keeps ${most} turns; it must keep at least 1.`)
  }
  const condensing: Condensing = {
    condense: async (messages, call) => leaveOut(messages, call, most),
    fork: () => condensing,
  }
  return { name: 'keep-last-turns', condensesOpenings: false, open: () => condensing }
}

function leaveOut(
  messages: readonly Message[],
  call: CondenseCall,
  most: number | undefined,
): Condensed {
  const left = leaveOutOldest(turnsOf(messages, call), call, {
    ...(most !== undefined && { most }),
    note: goneNote,
  })
  // If even the last turn is too long, what its tools said is what can be shortened.
  const shown = trimToFit(left.messages, call)
  if (shown.length === messages.length && shown.every((each, index) => each === messages[index])) {
    return { kind: 'unchanged' }
  }
  const reason = left.count === 0 ? 'tool outputs trimmed' : `${describeTurns(left.count)} left out`
  return { kind: 'rewritten', messages: shown, reason, figures: { leftOut: left.count } }
}
