import { boxedIn } from '../../base/core/answer.ts'
import type { Filter } from '../../base/core/group.ts'
import { type DropFrom, perTrajectory, type SaidTurn, turnsOf } from './filter.ts'

/** What makes a turn void. */
export interface VoidTurnOptions {
  /**
   * `general`: a turn with neither a call nor a word of answer. `simpletir`: a turn with neither a
   * complete call nor a boxed answer, as published (arXiv 2509.02479). @default 'general'
   */
  readonly definition?: 'general' | 'simpletir'
  /** SimpleTIR keeps what it drops in the group's statistics. @default 'loss' */
  readonly from?: DropFrom
}

/** Drops trajectories with a void turn: the visible symptom of a policy off its distribution. */
export function voidTurns({ definition = 'general', from = 'loss' }: VoidTurnOptions = {}): Filter {
  const isVoid = definition === 'general' ? isEmpty : hasNoCallOrBox
  return perTrajectory('void-turns', from, trajectory => {
    const found = turnsOf(trajectory).find(isVoid)
    if (!found) return undefined
    const missing =
      definition === 'general' ? 'a call nor an answer' : 'a complete call nor a boxed answer'
    return `turn ${found.number} has neither ${missing}`
  })
}

function isEmpty({ text, calls }: SaidTurn): boolean {
  return calls.length === 0 && text.trim() === ''
}

function hasNoCallOrBox({ text, calls }: SaidTurn): boolean {
  return calls.every(call => call.problem === 'malformed-call') && boxedIn(text) === undefined
}
