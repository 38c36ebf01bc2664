import type { Message } from '@espalier/text'
import type { Outcome } from '../../base/core/outcome.ts'
import type { Tree } from '../../base/core/tree.ts'
import { react, showInstead } from './act.ts'
import type { Attempt, RolloutContext } from './attempt.ts'
import { rollWalk } from './chain.ts'
import { sampleTurn } from './sample-turn.ts'
import { openingShown, type Walk } from './walk.ts'

/** How much of the past a step's prompt holds. */
export interface StepOptions {
  /** Turns before the current one that are shown with what they observed. @default 3 */
  readonly history?: number
}

/**
 * Rolls attempts step by step: every turn is sampled from, and trained on, a prompt of its own that
 * holds the opening and the last few turns. Each turn is a path, and a row, of the one tree.
 */
export function rollSteps(
  options: StepOptions = {},
): (context: RolloutContext, attempt: Attempt) => Promise<Tree> {
  const { history = 3 } = options
  return (context, attempt) => rollWalk(context, attempt, walk => stepToEnd(walk, history))
}

/** Samples, acts and shows the next prompt in turn until something ends the walk. */
export async function stepToEnd(walk: Walk, history: number): Promise<Outcome> {
  for (;;) {
    walk.attempt.signal.throwIfAborted()
    const sampled = await sampleTurn(walk)
    if (sampled.kind === 'end') return sampled.outcome
    const reaction = await react(walk, sampled.reply)
    if (reaction.kind === 'end') return reaction.outcome
    const turn = walk.turns.length
    const shown = lastTurns(walk, history)
    const reason = `turn ${turn} is shown the opening and the last ${Math.min(turn, history)} turns`
    showInstead(walk, shown, { by: 'step', reason })
  }
}

/** The opening, condensed where it was, and the messages of the last turns. */
export function lastTurns(walk: Walk, history: number): readonly Message[] {
  const opening = openingShown(walk)
  const first = walk.turns.at(-history)?.messages ?? walk.turns[0]!.messages
  return [...opening, ...(history === 0 ? lastObserved(walk) : walk.messages.slice(first))]
}

/** Without history, what was observed last still has to be shown. */
function lastObserved(walk: Walk): readonly Message[] {
  return walk.messages.slice(walk.turns.at(-1)!.messages)
}
