import type { Call } from './call.ts'
import type { Message, ToolDefinition } from './message.ts'
import type { Speaker } from './speaker.ts'
import type { ToolProblem } from './tool.ts'

/** What a condenser works with. */
export interface CondenseCall extends Call {
  /** The most tokens the condensed conversation may have when rendered. */
  readonly tokens: number
  /** How many tokens these messages take when rendered. */
  count(messages: readonly Message[]): number
  /**
   * The policy itself, for condensers that let it summarise: what it says is sampled on a path of
   * its own and trained with the trajectory.
   */
  readonly self: Speaker
  /** How many of the messages belong to the opening. */
  readonly opening: number
}

/** What condensing gave. */
export type Condensed =
  | { readonly kind: 'unchanged' }
  | {
      readonly kind: 'rewritten'
      readonly messages: readonly Message[]
      /** In words: what was condensed, from and to which length. */
      readonly reason: string
    }

/** A tool with which the policy gets back what was condensed. */
export interface Recall {
  readonly definition: ToolDefinition
  /** Answers one call; what is wrong with it is an answer too. */
  answer(input: unknown): { readonly content: string; readonly problem?: ToolProblem }
}

/** The condenser of one attempt: it remembers what it condensed, so that it can be recalled. */
export interface Condensing {
  /** Before the first turn, the task's own messages; between turns, what is shown so far. */
  condense(messages: readonly Message[], call: CondenseCall): Promise<Condensed>
  readonly recall?: Recall
}

/** Shortens contexts; what it changes starts a new path. Opened once per attempt. */
export interface Condenser {
  readonly name: string
  /** Whether openings are condensed before the first turn, however short they are. */
  readonly condensesOpenings: boolean
  open(): Condensing
}
