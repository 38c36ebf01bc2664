import type { Boundary } from './failure.ts'

/** What is configured to end a trajectory early; a guard names itself. */
export type Limit =
  | 'turns'
  | 'tokens'
  | 'context'
  | 'tool-calls'
  | 'time'
  | 'misses'
  | `guard:${string}`

/** It came to its own end: the environment, the policy's answer, or the user ended it. */
export interface Completed {
  readonly kind: 'completed'
}

/** A limit or a guard ended it. Gradable: the policy brought it about. */
export interface Truncated {
  readonly kind: 'truncated'
  readonly limit: Limit
}

/** Somebody stopped it. */
export interface Aborted {
  readonly kind: 'aborted'
  readonly by: string
}

/** Something outside the policy broke. */
export interface Failed {
  readonly kind: 'failed'
  readonly boundary: Boundary
  readonly message: string
}

/** How a trajectory ended. */
export type Outcome = Completed | Truncated | Aborted | Failed

/** The outcomes that may be scored: what the policy did, it can be graded for. */
export type GradableOutcome = Completed | Truncated

/** Whether a trajectory with this outcome may be scored. */
export function isGradableOutcome(outcome: Outcome): outcome is GradableOutcome {
  return outcome.kind === 'completed' || outcome.kind === 'truncated'
}

const guardMark = 'guard:'

/** The name of the guard that ended a trajectory, if one did. */
export function guardOf(outcome: Outcome): string | undefined {
  if (outcome.kind !== 'truncated' || !outcome.limit.startsWith(guardMark)) return undefined
  return outcome.limit.slice(guardMark.length)
}

/** An outcome in words. */
export function describeOutcome(outcome: Outcome): string {
  switch (outcome.kind) {
    case 'completed':
      return 'completed'
    case 'truncated':
      return `truncated by ${outcome.limit}`
    case 'aborted':
      return `aborted by ${outcome.by}`
    case 'failed':
      return `failed in ${outcome.boundary}: ${outcome.message}`
    default:
      return outcome satisfies never
  }
}

/** How an attempt without a reward ended; its own outcome if only the reward failed. */
export function describeUnscored(
  own: Outcome,
  outcome: Extract<Outcome, { kind: 'failed' | 'aborted' }>,
): string {
  if (!isGradableOutcome(own)) return describeOutcome(outcome)
  const problem =
    outcome.kind === 'failed' ? `failed: ${outcome.message}` : describeOutcome(outcome)
  return `${describeOutcome(own)}, but its reward ${problem}`
}
