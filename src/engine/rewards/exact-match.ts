import { isExactAnswer } from '../../base/core/answer.ts'
import type { RewardFunction } from '../../base/core/reward.ts'

/**
 * 1 if the final answer (boxed, after `####`, or all of it) says the same as the task's
 * `answer`, letter case and spacing aside; a list of answers accepts each.
 */
export function exactMatch(): RewardFunction {
  return ({ answer, task }) => Number(isExactAnswer(answer, task.data))
}
