import { isExactAnswer, isNumberAnswer } from '../../../base/core/answer.ts'
import type { Environment } from '../../../base/core/environment.ts'
import { environment } from '../environment.ts'
import { openingOf, type PromptTask, promptTask } from './prompt-task.ts'

/** How an answer is compared with the task's. */
export type Match = 'exact' | 'number'

/** Whether a text answers a task right. */
export const matches: Readonly<Record<Match, (text: string, data: unknown) => boolean>> = {
  exact: isExactAnswer,
  number: (text, data) => isNumberAnswer(text, data),
}

/** A task's messages in, one answer out; rewarded if it matches the task's `answer`. */
export function singleTurn(options: { readonly match?: Match } = {}): Environment<PromptTask> {
  const { match } = { match: 'exact' as const, ...options }
  return environment({
    name: 'single-turn',
    task: promptTask,
    open: ({ data }) => ({ opening: openingOf(data) }),
    reward: { right: ({ task, answer }) => Number(matches[match](answer, task.data)) },
  })
}
