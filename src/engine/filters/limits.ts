import type { Filter } from '../../base/core/group.ts'
import { describeOutcome, guardOf } from '../../base/core/outcome.ts'
import { type DropFrom, perTrajectory } from './filter.ts'

/** Drops trajectories that a limit cut: how they would have ended is unknown. */
export function overlong({ from = 'loss' }: { readonly from?: DropFrom } = {}): Filter {
  return perTrajectory('overlong', from, ({ outcome }) => {
    if (outcome.kind !== 'truncated' || guardOf(outcome) !== undefined) return undefined
    return describeOutcome(outcome)
  })
}

/** Drops trajectories that a guard stopped. */
export function guarded({ from = 'loss' }: { readonly from?: DropFrom } = {}): Filter {
  return perTrajectory('guarded', from, ({ outcome }) => {
    if (guardOf(outcome) === undefined) return undefined
    return describeOutcome(outcome)
  })
}

/** Drops completed trajectories with fewer turns than this: they gave up before they began. @default 2 */
export function prematureEnd({
  turns = 2,
  from = 'loss',
}: {
  readonly turns?: number
  readonly from?: DropFrom
} = {}): Filter {
  return perTrajectory('premature-end', from, ({ outcome, turns: taken }) => {
    if (outcome.kind !== 'completed' || taken.length >= turns) return undefined
    return `ended after ${taken.length} of at least ${turns} turns`
  })
}

/** Drops trajectories in which more than this share of calls went wrong. @default 0.5 of at least 3 */
export function toolErrors({
  share = 0.5,
  calls: fewest = 3,
  from = 'loss',
}: {
  readonly share?: number
  readonly calls?: number
  readonly from?: DropFrom
} = {}): Filter {
  return perTrajectory('tool-errors', from, ({ calls }) => {
    const wrong = calls.filter(call => call.problem !== undefined).length
    if (calls.length < fewest || wrong / calls.length <= share) return undefined
    return `${wrong} of ${calls.length} calls went wrong`
  })
}

/** Drops trajectories in which more than this share of calls could not be parsed. @default 0.5 */
export function malformedCalls({
  share = 0.5,
  from = 'loss',
}: {
  readonly share?: number
  readonly from?: DropFrom
} = {}): Filter {
  return perTrajectory('malformed-calls', from, ({ calls }) => {
    const malformed = calls.filter(call => call.problem === 'malformed-call').length
    if (calls.length === 0 || malformed / calls.length <= share) return undefined
    return `${malformed} of ${calls.length} calls could not be read`
  })
}
