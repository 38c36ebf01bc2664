import type { Content, Message, Reply } from '@espalier/text'
import type { Call } from '../../base/core/call.ts'
import type { OpenCall, StepCall, Transition } from '../../base/core/environment.ts'
import type { TaskId } from '../../base/core/ids.ts'
import type { CallRecord } from '../../base/core/tool.ts'
import type { RunCalls } from './tools/run-calls.ts'
import type { Toolset } from './tools/tool.ts'

/** What an environment's `open` is given. */
export interface OpenWorldCall<Data> extends OpenCall, WorldCall {
  readonly data: Data
  readonly id: TaskId
}

/** Opening or forking a world, with a way to register clean-up. */
export interface WorldCall extends Call {
  /**
   * Runs when the world is disposed of, last registered first, and also if opening it fails
   * later on: for what is taken from pools, opened or connected on the way.
   */
  defer(cleanUp: () => void | PromiseLike<void>): void
}

/** What an environment's `open` gives: the opening, and how the world behaves. */
export interface OpenedWorld<Report> extends WorldBehaviour<Report> {
  /** The messages the policy first sees; at least one. Once their images are kept, references stand here in their place. */
  readonly opening: readonly Message[]
}

/** How a world behaves; all of it is optional. */
export interface WorldBehaviour<Report> {
  readonly tools?: Toolset
  /** Makes a turn without a call a reply to a user, who answers here. */
  readonly respond?: Respond | OutsideUser
  /** Asked after every action: whether the world has come to its end. */
  isOver?(): boolean
  /** Plain JSON about the final state, for rewards and records. */
  report?(): Report | Promise<Report>
  /** Asked before every action: the undecorated state, for step-level advantages. */
  anchor?(): string
  /** Asked after every action: what that step alone was worth. */
  stepReward?(step: WorldStep): number | undefined
  /** A copy of the world that goes its own way; without it, worlds are forked by replay. */
  fork?(call: WorldCall): WorldBehaviour<Report> | Promise<WorldBehaviour<Report>>
  /** Takes over what an action does; `runCalls` runs calls of `tools` as usual. */
  step?(action: Reply, call: CustomStepCall): Transition | Promise<Transition>
  dispose?(): void | PromiseLike<void>
}

/** Answers what the policy said to the user; `undefined` ends the conversation. */
export type Respond = (
  text: string,
  call: StepCall,
) => Content | undefined | Promise<Content | undefined>

/** A user beyond the world, such as a model: a replay repeats what was said and never asks again. */
export interface OutsideUser {
  readonly effects: 'outside'
  readonly respond: Respond
  /** Called in a replay with what was said to the user and what the user had answered. */
  recall?(text: string, answer: string | undefined): void
}

/** One action as a step reward sees it. */
export interface WorldStep {
  readonly action: Reply
  readonly calls: readonly CallRecord[]
  readonly turn: number
}

/** What a world's own `step` is given. */
export interface CustomStepCall extends StepCall {
  readonly runCalls: RunCalls
}
