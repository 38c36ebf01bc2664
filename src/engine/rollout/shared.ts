import type { Renderer } from '@espalier/text'
import { steadySeconds } from '../../base/core/call.ts'
import { makeLanes } from '../../base/core/lane.ts'
import { type Policy, plainSampling } from '../../base/core/policy.ts'
import type { Limits, RolloutContext } from './attempt.ts'
import { makeToolLists, type ToolLists } from './tool-lists.ts'
import { makeYielding, type Yielding } from './yielding.ts'

/**
 * Mutable state that the attempts of one run share. It is made once per run and is part of the
 * context: instruments make a new context for every attempt, and all of these carry the same state.
 */
export interface SharedState {
  readonly tools: ToolLists
  readonly yielding: Yielding
}

/** Makes the shared state of a run; `clock` gives seconds. */
export function makeSharedState(clock: () => number): SharedState {
  return { tools: makeToolLists(), yielding: makeYielding(clock) }
}

/** What attempts outside a run need. */
export interface PlainParts {
  readonly policy: Policy
  readonly renderer: Renderer
  readonly limits: Limits
  /** How many requests, calls and rewards may be under way at one time. */
  readonly concurrency: number
}

/** What attempts outside a run share: sampled plainly, with nothing that stops or watches them. */
export function plainContext(parts: PlainParts): Omit<RolloutContext, 'environment'> {
  const { policy, renderer, limits, concurrency: most } = parts
  return {
    policy,
    renderer,
    limits,
    sampling: plainSampling,
    onLength: 'end',
    stopStrings: [],
    topLogprobs: 0,
    lanes: makeLanes({ policy: most, tools: most, environment: most, reward: most }),
    clock: steadySeconds,
    shared: makeSharedState(steadySeconds),
  }
}
