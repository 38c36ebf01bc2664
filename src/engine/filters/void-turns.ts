import { boxedIn } from '../../base/core/answer.ts'
import type { Filter } from '../../base/core/group.ts'
import type { Trajectory } from '../../base/core/trajectory.ts'
import { type DropFrom, perTrajectory, type SaidTurn, turnsOf } from './filter.ts'

/**
 * What makes a turn void. `general`: it has neither a call nor a word of answer. `simpletir`: it has neither a
 * complete call nor a boxed answer, as published (arXiv 2509.02479).
 */
export type VoidDefinition = 'general' | 'simpletir'

/** What the filter drops, and from what. */
export interface VoidTurnOptions {
  /** @default 'general' */
  readonly definition?: VoidDefinition
  /** SimpleTIR keeps what it drops in the group's statistics. @default 'loss' */
  readonly from?: DropFrom
}

/** Drops trajectories with a void turn: the visible symptom of a policy off its distribution. */
export function voidTurns({ definition = 'general', from = 'loss' }: VoidTurnOptions = {}): Filter {
  return perTrajectory('void-turns', from, trajectory => {
    const [first] = voidTurnsIn(trajectory, definition)
    if (first === undefined) return undefined
    const missing =
      definition === 'general' ? 'a call nor an answer' : 'a complete call nor a boxed answer'
    return `turn ${first} has neither ${missing}`
  })
}

/** The numbers of a trajectory's void turns. */
export function voidTurnsIn(trajectory: Trajectory, definition: VoidDefinition): readonly number[] {
  const isVoid = definition === 'general' ? isEmpty : hasNoCallOrBox
  return turnsOf(trajectory)
    .filter(isVoid)
    .map(({ number }) => number)
}

function isEmpty({ text, calls }: SaidTurn): boolean {
  return calls.length === 0 && text.trim() === ''
}

function hasNoCallOrBox({ text, calls }: SaidTurn): boolean {
  return calls.every(call => call.problem === 'malformed-call') && boxedIn(text) === undefined
}
