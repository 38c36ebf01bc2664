import type { Message } from '@espalier/text'
import type { Json, TrajectoryId } from './ids.ts'
import type { GradableOutcome, Outcome } from './outcome.ts'
import type { Finish } from './policy.ts'
import type { CallRecord } from './tool.ts'
import type { Place } from './tree.ts'

/** What the policy was newly given, then what it sampled in answer. */
export interface Turn {
  /** The first and the last sampled node; several if a sample was resumed under newer weights. */
  readonly from: number
  readonly end: Place
  readonly finish: Finish
  /** How many messages the conversation had before this turn's own. */
  readonly messages: number
  /** What the step alone was worth, if the environment says. */
  readonly reward?: number
  /** The undecorated state before the action, if the environment says. */
  readonly anchor?: string
}

/** Whether the tokens are the ones the policy saw and sampled. */
export interface Fidelity {
  /** `re-encoded`: the server gave no ids. `forked`: exact, with rewrites. */
  readonly kind: 'exact' | 'forked' | 're-encoded'
  readonly forks: readonly Fork[]
}

/** A rewrite, for people: at which token of the old path, and why. */
export interface Fork {
  readonly at: number
  readonly reason: string
}

/** Tokens that were paid for. */
export interface Usage {
  readonly sampled: number
  readonly prompt: number
}

/** What depends on clocks and servers, and is kept out of comparisons between runs. */
export interface Volatile {
  readonly seconds: {
    readonly policy: number
    readonly tools: number
    readonly environment: number
    readonly reward: number
  }
  /** Prompt tokens that were in a server's prefix cache. */
  readonly cached: number
  readonly servers: readonly string[]
}

/** Something that happened and is counted: a retry, a guard, a tool's problem, a condensing. */
export interface TrajectoryEvent {
  readonly kind: string
  readonly turn: number
  readonly detail: string
  /** Its numbers, for reports. */
  readonly figures?: Readonly<Record<string, number>>
}

/** What the policy was shown from a turn on, instead of the messages before it. */
export interface View {
  readonly turn: number
  /** What stood instead: a condensed conversation, the bounded history of a step, examples before the task. */
  readonly by: string
  readonly shown: readonly Message[]
  /** Which of those messages are examples: conversations of others, never trained. */
  readonly examples?: { readonly start: number; readonly end: number }
  /** The first message of the conversation that followed as it was. */
  readonly from: number
}

/** One attempt that ended: a finished path of its tree, with how it ended. */
export interface Trajectory<O extends Outcome = Outcome> {
  readonly id: TrajectoryId
  /** The end of its last path. */
  readonly end: Place
  readonly outcome: O
  readonly turns: readonly Turn[]
  /** Everything that was said, as it was said. */
  readonly messages: readonly Message[]
  /** Where the policy was shown something else, or more: a condensed conversation, examples. */
  readonly views?: readonly View[]
  readonly calls: readonly CallRecord[]
  readonly report?: Json
  /** What it answered last, if the agent itself says so. @default the text of the last message */
  readonly answer?: string
  readonly fidelity: Fidelity
  readonly usage: Usage
  readonly events: readonly TrajectoryEvent[]
  readonly volatile: Volatile
  /** Product of 1/width over the branchings on its path; 1 in a chain. */
  readonly share: number
}

/** What `plainTrajectory` must be given. */
type Known<O extends Outcome> = Pick<Trajectory<O>, 'id' | 'outcome'> & Partial<Trajectory<O>>

/** A trajectory with only this known: no tokens, no time, no cost. */
export function plainTrajectory<O extends Outcome>(known: Known<O>): Trajectory<O> {
  return {
    end: { node: 0, offset: 0 },
    turns: [],
    messages: [],
    calls: [],
    fidelity: { kind: 'exact', forks: [] },
    usage: { sampled: 0, prompt: 0 },
    events: [],
    volatile: {
      seconds: { policy: 0, tools: 0, environment: 0, reward: 0 },
      cached: 0,
      servers: [],
    },
    share: 1,
    ...known,
  }
}

/** A trajectory that may be scored. A failed or aborted one never carries a reward. */
export type Gradable = Trajectory<GradableOutcome>

/** Whether a trajectory may be scored. */
export function isGradable(trajectory: Trajectory): trajectory is Gradable {
  return trajectory.outcome.kind === 'completed' || trajectory.outcome.kind === 'truncated'
}
