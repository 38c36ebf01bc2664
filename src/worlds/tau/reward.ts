import { itemOf, lower } from './operations.ts'
import { RESPOND, type TauAction } from './task.ts'

/** What an attempt was worth, with the reasons as tau-bench reports them. */
export interface TauReward {
  readonly reward: 0 | 1
  readonly info: TauActionInfo | TauOutputInfo
  /** The task's own actions. */
  readonly actions: readonly TauAction[]
}

/** The verdict on a task without outputs: whether the database is right. */
export interface TauActionInfo {
  readonly r_actions: 0 | 1
  readonly gt_data_hash: string
}

/** The verdict on a task with outputs; a wrong database takes the reward without showing here. */
export interface TauOutputInfo {
  readonly r_outputs: 0 | 1
  readonly outputs: ReadonlyMap<string, boolean>
}

/** Which outputs were said to the user, in any reply, whatever the case and the commas. */
export function checkOutputs(
  outputs: readonly string[],
  actions: readonly TauAction[],
): ReadonlyMap<string, boolean> {
  const replies = actions.filter(({ name }) => name === RESPOND)
  // Read lazily, as in the original: a reply that is not text raises only when the search reaches it.
  const said = (reply: TauAction): string =>
    lower(itemOf(reply.kwargs, 'content')).replaceAll(',', '')
  return new Map(
    outputs.map(output => [
      output,
      replies.some(reply => said(reply).includes(output.toLowerCase())),
    ]),
  )
}
