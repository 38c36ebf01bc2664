import type { Dict } from './program/values.ts'
import type { Requestor } from './task.ts'

/** A call of a tool, by either side. */
export interface Tau2ToolCall {
  readonly id: string
  readonly name: string
  readonly arguments: Dict
  readonly requestor: Requestor
}

/** What one side said: words, calls, or both. */
export interface SpokenMessage {
  readonly role: 'assistant' | 'user'
  readonly content: string | null
  readonly tool_calls: readonly Tau2ToolCall[] | null
  readonly cost?: number | null
}

/** What a call was answered with. */
export interface ToolMessage {
  readonly role: 'tool'
  readonly id: string
  readonly content: string | null
  readonly requestor: Requestor
  readonly error: boolean
  /** What was wrong with the call, if it raised; the original has no such field. */
  readonly problem?: 'unknown-tool' | 'invalid-arguments' | 'thrown'
}

/** A message of a conversation; the order of all is their order in time. */
export type Tau2Message =
  | SpokenMessage
  | ToolMessage
  | { readonly role: 'system'; readonly content: string }
