import type { Message, ToolDefinition } from '@espalier/text'
import type { Call } from './call.ts'
import type { Lane } from './lane.ts'
import type { Speaker } from './speaker.ts'
import type { ToolProblem } from './tool.ts'

/** What a condenser works with. */
export interface CondenseCall extends Call {
  /** The most tokens the condensed conversation should have when rendered. */
  readonly tokens: number
  /** The most tokens a prompt and its answer may have together. */
  readonly context: number
  /** Turns sampled so far; 0 before the first one, when only the opening is there. */
  readonly turn: number
  /** How many of the messages, from the first on, are the opening. They stay as many. */
  readonly opening: number
  /** How many tokens these messages take when rendered. */
  count(messages: readonly Message[]): number
  /** The lane that requests to other models go through. */
  readonly lane: Lane
  /**
   * The policy itself, for condensers that let it summarise: what it says is sampled on a path of
   * its own and trained with the trajectory.
   */
  readonly self: Speaker
}

/** Numbers about what condensing did: how many blocks, characters, failures, tokens it took. */
export type CondenseFigures = Readonly<Record<string, number>>

/** What condensing gave. */
export type Condensed =
  | {
      readonly kind: 'unchanged'
      /** In words: why there was nothing to condense, if nothing went wrong. */
      readonly reason?: string
      /** What went wrong, if something did. */
      readonly problem?: string
      readonly figures?: CondenseFigures
    }
  | {
      readonly kind: 'rewritten'
      readonly messages: readonly Message[]
      /** In words: what was condensed. */
      readonly reason: string
      readonly figures?: CondenseFigures
    }

/** What recalling a block gave. */
export interface RecallAnswer {
  readonly content: string
  readonly problem?: ToolProblem
  /** The block that was given back, with the code points of its text that were shown and cut. */
  readonly recalled?: { readonly block: number; readonly characters: number; readonly cut: number }
}

/** A tool with which the policy gets back what was condensed. */
export interface Recall {
  readonly definition: ToolDefinition
  /** Answers one call; a wrong call is answered with what is wrong. `shown` is what the policy sees. */
  answer(input: unknown, shown: readonly Message[]): RecallAnswer
}

/** The condenser of one attempt: it remembers what it condensed, so that it can be recalled. */
export interface Condensing {
  /** Before the first turn, the task's own messages; between turns, what is shown so far. */
  condense(messages: readonly Message[], call: CondenseCall): Promise<Condensed>
  readonly recall?: Recall
  /** A copy with the memory this one had when turn number `turn` was about to be sampled. */
  fork(turn: number): Condensing
}

/** One condensing, as a stored trajectory recorded it. */
export interface Condensation {
  readonly turn: number
  /** How many of the messages, from the first on, were the opening. */
  readonly opening: number
  readonly before: readonly Message[]
  readonly after: readonly Message[]
}

/** Shortens contexts; what it changes starts a new path. Opened once per attempt. */
export interface Condenser {
  readonly name: string
  /** Whether openings are condensed before the first turn, however short they are. */
  readonly condensesOpenings: boolean
  open(): Condensing
  /** The condenser of an attempt that is taken up again, with the memory of what it condensed. @default open() */
  reopen?(past: readonly Condensation[], call: CondenseCall): Promise<Condensing>
}
