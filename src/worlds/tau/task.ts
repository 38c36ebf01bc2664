import type { PythonDict } from '@espalier/text/python'

/** A call of a tool, or `respond` with `content` for the user. */
export interface TauAction {
  readonly name: string
  readonly kwargs: PythonDict
}

/** The action that speaks to the user instead of calling a tool. */
export const RESPOND = 'respond'

/** What the user says, somewhere in a message, to end the conversation. */
export const STOP = '###STOP###'

/** A problem of tau-bench: who the user is and wants, and what a right solution does and says. */
export interface TauTask {
  readonly userId: string
  readonly instruction: string
  readonly actions: readonly TauAction[]
  readonly outputs: readonly string[]
}

/** Which task to attempt: its number in a split. */
export interface TauTaskData {
  readonly split: string
  readonly index: number
}
