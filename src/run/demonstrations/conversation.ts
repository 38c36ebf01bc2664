import type { Message, ToolDefinition } from '@espalier/text'
import type { TaskId } from '../../base/core/ids.ts'

/** A conversation that shows how it is done. */
export interface Conversation {
  readonly messages: readonly Message[]
  readonly tools: readonly ToolDefinition[]
  /** The first message from which on the assistant is learned from. @default all of them */
  readonly from?: number
  /** The task it solves, if that is known: nobody who attempts that task is shown it. */
  readonly task?: TaskId
}
