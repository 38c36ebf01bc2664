import type { Renderer } from '@espalier/text'
import type { Condenser } from '../../base/core/condenser.ts'
import type { Environment, Task } from '../../base/core/environment.ts'
import type { Guard } from '../../base/core/guard.ts'
import type { GroupId } from '../../base/core/ids.ts'
import type { Lanes } from '../../base/core/lane.ts'
import type { Policy, Sampling } from '../../base/core/policy.ts'
import type { ImageSettings } from './images/keep.ts'
import type { SharedState } from './shared.ts'
import type { ShownExamples } from './world/examples.ts'

/** What is configured to end an attempt. */
export interface Limits {
  /** Samples per trajectory. @default 16 */
  readonly turns: number
  /** Sampled tokens per trajectory. @default 8192 */
  readonly tokens: number
  /** Tokens of a prompt and its answer together. @default 32768 */
  readonly context: number
  /** Sampled tokens per turn. @default 2048 */
  readonly newTokens: number
  /** Seconds per trajectory. @default Infinity */
  readonly seconds: number
}

/** The default limits. */
export const defaultLimits: Limits = {
  turns: 16,
  tokens: 8192,
  context: 32_768,
  newTokens: 2048,
  seconds: Number.POSITIVE_INFINITY,
}

/** Seconds that a part of a reward may take by default: a judge that is asked three times takes minutes. */
export const defaultRewardSeconds = 600

/** When and how far contexts are condensed. */
export interface CondenseSettings {
  readonly condenser: Condenser
  /** Share of the context from which on a conversation is condensed. */
  readonly above: number
  /** Share of the context that the condensed conversation may take. */
  readonly to: number
  /** Whether the policy's own summaries are trained. */
  readonly trainSummaries: boolean
}

/** Whether running out of wall-clock time counts as the policy's fault (`graded`) or as nobody's. */
export type OnTime = 'ungraded' | 'graded'

/** Everything that attempts of one run share. */
export interface RolloutContext {
  readonly environment: Environment
  readonly policy: Policy
  readonly renderer: Renderer
  readonly sampling: Sampling
  readonly limits: Limits
  /** What a sample that ran out of tokens does to its trajectory. */
  readonly onLength: 'end' | 'continue'
  /** Whether an attempt that ran out of wall-clock time may be scored. @default 'ungraded' */
  readonly onTime?: OnTime
  /** Seconds that each part of a reward may take before it fails. @default 600 */
  readonly rewardSeconds?: number
  readonly stopStrings: readonly string[]
  readonly topLogprobs: number
  readonly lanes: Lanes
  /** Seconds on a clock that never runs backwards. */
  readonly clock: () => number
  /** Made once per run; contexts derived from this one share it. */
  readonly shared: SharedState
  /** Watchers that stop samples and attempts early. */
  readonly guards?: readonly Guard[]
  readonly condense?: CondenseSettings
  /** Which images attempts may see. @default none */
  readonly images?: ImageSettings
  /** Conversations that the policy is shown before its task. */
  readonly examples?: ShownExamples
  /** The players of seats that the policy does not play. */
  readonly seats?: Seating
}

/** A player of a seat that does not learn. */
export interface SeatPlayer {
  readonly policy: Policy
  /** Turns this seat's messages into its player's tokens. */
  readonly renderer: Renderer
}

/** The players of seats, by name; seats that are not named are the policy's own, and learn. */
export type Seating = ReadonlyMap<string, SeatPlayer>

/** One attempt to make: which task, which member of its group, under which seed. */
export interface Attempt {
  readonly task: Task
  readonly group: GroupId
  readonly member: number
  /** The run's seed. */
  readonly seed: number
  readonly signal: AbortSignal
  /** Distinguishes this making of the attempt from others in the same process. */
  readonly making?: string
}

/** Wraps what one attempt is rolled with, its policy or environment, for instance with a budget or a record. */
export type Instrument = (context: RolloutContext, attempt: Attempt) => RolloutContext
