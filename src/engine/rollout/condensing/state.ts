import type { Condensing } from '../../../base/core/condenser.ts'
import type { Place } from '../../../base/core/tree.ts'

/** The state of condensing one walk's context. */
export interface CondensingState {
  /** What condenses it, with the memory of what it condensed. */
  readonly by: Condensing
  /** The last turn before which condensing was considered, and a promise of its end. */
  looked?: { readonly turn: number; readonly done: Promise<void> }
  /** The fewest tokens with which it is tried again after it did not help. */
  from: number
  /** The end of a path on which the policy summarised, until the path that replaces it begins. */
  summaryEnd?: Place
}

/** The state of a walk that has not begun. */
export function makeCondensingState(by: Condensing): CondensingState {
  return { by, from: 0 }
}

/** The state of condensing for a walk that goes on from another, or from one of its earlier turns. */
export function forkCondensingState(state: CondensingState, turns: number): CondensingState {
  return { ...state, by: state.by.fork(turns) }
}

/** The state with which nothing more is condensed before this turn: its context must stay as it was. */
export function lookedBefore(state: CondensingState, turn: number): CondensingState {
  return { ...state, looked: { turn, done: Promise.resolve() } }
}

/** The end of the path on which the policy summarised, for the path that replaces it. */
export function takeSummaryEnd(state: CondensingState | undefined): Place | undefined {
  const end = state?.summaryEnd
  if (state) delete state.summaryEnd
  return end
}
