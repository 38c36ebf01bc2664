import { openToolLists, type ToolLists } from './tool-lists.ts'
import { openYielding, type Yielding } from './yielding.ts'

/**
 * What the attempts of one run share and change. It is made once per run and carried by the run's
 * context: instruments put a new context around every attempt, and all of those pass it on.
 */
export interface SharedState {
  readonly tools: ToolLists
  readonly yielding: Yielding
}

/** Makes the shared state of a run; `clock` gives seconds. */
export function openSharedState(clock: () => number): SharedState {
  return { tools: openToolLists(), yielding: openYielding(clock) }
}
