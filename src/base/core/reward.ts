import type { Message } from '@espalier/text'
import type { Call } from './call.ts'
import type { Task } from './environment.ts'
import type { GradableOutcome } from './outcome.ts'
import type { CallRecord } from './tool.ts'
import type { Trajectory } from './trajectory.ts'

/** A total and the named parts it was summed from; a part of weight 0 is a metric. */
export interface Reward {
  readonly total: number
  readonly parts: readonly RewardScore[]
}

/** What one named part gave. */
export interface RewardScore {
  readonly name: string
  readonly score: number
  readonly weight: number
}

/** What a reward is given: never the open world, so that it can be run again years later. */
export interface RewardInput<Data = unknown, Report = unknown> {
  readonly task: Task<Data>
  readonly messages: readonly Message[]
  /** The text of the policy's last message, trimmed; what a harness answered last. */
  readonly answer: string
  readonly calls: readonly CallRecord[]
  /** The world's report; `undefined` if it gives none. */
  readonly report: Report
  readonly outcome: GradableOutcome
  readonly trajectory: Trajectory
  /** Whose trajectory it is, if an attempt has several seats; else ''. */
  readonly seat: string
}

/**
 * Scores one gradable trajectory. Typed as a method is, so that an environment of known task data
 * is also an `Environment<unknown>`: task data pass `readTask` before any reward sees them.
 */
export type RewardFunction<Data = unknown, Report = unknown> = {
  score(input: RewardInput<Data, Report>, call: Call): number | Promise<number>
}['score']

/** A reward function, or one with the weight it has in the total. */
export type RewardPart<Data = unknown, Report = unknown> =
  | RewardFunction<Data, Report>
  | { readonly weight: number; readonly score: RewardFunction<Data, Report> }

/** The weighted total of named scores. */
export function toReward(parts: readonly RewardScore[]): Reward {
  return { total: parts.reduce((sum, part) => sum + part.weight * part.score, 0), parts }
}
