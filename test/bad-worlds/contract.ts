import type { Environment } from '../../src/base/core/environment.ts'
import type { Boundary } from '../../src/base/core/failure.ts'
import type { RollOptions } from '../../src/run/run/roll-options.ts'

/** The ways in which a world can be bad. */
export const kindsOfBadness = ['hangs', 'dies', 'lies', 'floods', 'answers out of turn'] as const
export type Badness = (typeof kindsOfBadness)[number]

/** Two tasks of one environment: the world of the first is bad, that of the second is not. */
export interface Meeting {
  readonly environment: Environment
  readonly bad: object
  /** An attempt at it is scored with 1. */
  readonly good: object
  /** What the policy says in each, turn by turn. */
  readonly says: { readonly bad: readonly string[]; readonly good: readonly string[] }
  readonly options?: Partial<RollOptions>
  /** The tasks' names, where the environment gives its own. @default 1 and 2 */
  readonly names?: { readonly bad: string; readonly good: string }
}

/** What runs when a test is over. */
export type Closing = (() => unknown)[]

/** One way in which worlds of one kind are bad. */
export interface BadCase {
  readonly badness: Badness
  /** In words, where there are several of them. */
  readonly how?: string
  /** The reported reason; `aborted` if a clock of the run ends it. */
  readonly reason: RegExp | 'aborted'
  readonly boundary?: Boundary
  meet(closing: Closing): Promise<Meeting> | Meeting
}

/** A kind of world, and all that can be bad about it. */
export interface KindOfWorld {
  readonly kind: string
  readonly boundary: Boundary
  readonly cases: readonly BadCase[]
  /** Why some badness cannot happen. */
  readonly cannot?: Partial<Readonly<Record<Badness, string>>>
  /** Whether what it needs is installed. */
  readonly isHere?: boolean
}
