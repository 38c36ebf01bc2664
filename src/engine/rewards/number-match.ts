import { isNumberAnswer } from '../../base/core/answer.ts'
import type { RewardFunction } from '../../base/core/reward.ts'

/** How near a number must come. */
export interface NumberMatchOptions {
  /** Relative to the right number, or absolute if that is below 1. @default 1e-6 */
  readonly tolerance?: number
}

/** 1 if the last number of the final answer is the task's `answer`. */
export function numberMatch(options: NumberMatchOptions = {}): RewardFunction {
  const { tolerance } = { tolerance: 1e-6, ...options }
  if (!(tolerance >= 0)) throw new RangeError(`tolerance is ${tolerance}; it must be at least 0.`)
  return ({ answer, task }) => Number(isNumberAnswer(answer, task.data, tolerance))
}
