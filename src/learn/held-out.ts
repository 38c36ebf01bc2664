import type { Task } from '../core/environment.ts'
import type { Filter } from '../core/group.ts'
import type { GroupId } from '../core/ids.ts'
import type { Reward } from '../core/reward.ts'
import type { Trajectory } from '../core/trajectory.ts'
import { type Interval, wilsonInterval } from '../math/intervals.ts'
import { openRollPipeline, type RollParts } from '../run/roll-groups.ts'

/** How well a policy does on tasks it was not trained on. */
export interface Evaluation {
  /** Solved attempts of those that could be scored. */
  readonly success: number
  /** Wilson's, with 95 % confidence. */
  readonly interval: Interval
  readonly scored: number
  /** Attempts that failed outside the policy; they count neither way. */
  readonly unscored: number
  readonly meanReward: number
  readonly sampledTokens: number
  readonly attempts: readonly EvaluatedAttempt[]
}

/** One held-out task as it went. */
export interface EvaluatedAttempt {
  readonly task: string
  readonly isSolved: boolean
  readonly reward: Reward
  readonly trajectory: Trajectory
}

/** What an evaluation is told besides the parts. */
export interface EvaluationOptions {
  /** Names it in the ids of its groups. */
  readonly name: string
  /** The reward from which on a task counts as solved. */
  readonly successAt: number
  /** Where its groups stand in the run's order. */
  readonly order: number
  readonly step?: number
}

/** Keeps evaluations in the journal and out of every loss. */
const notTrained: Filter = {
  name: 'evaluation',
  judge: group =>
    new Map(
      group.members.map(({ trajectory }) => [
        trajectory.id,
        { reason: 'held out', from: 'loss-and-statistics' } as const,
      ]),
    ),
}

/** Rolls every held-out task once, at the run's own sampling. */
export async function evaluateHeldOut<Data>(
  tasks: readonly Task<Data>[],
  parts: RollParts<Data>,
  options: EvaluationOptions,
): Promise<Evaluation> {
  const { name, successAt, order, step } = options
  const pipeline = openRollPipeline({ ...parts, group: 1, filters: [notTrained] })
  tasks.forEach((task, index) => {
    pipeline.submit({
      id: `${name}/${task.id}` as GroupId,
      task,
      order: order + index,
      ...(step !== undefined && { step }),
    })
  })
  const attempts: EvaluatedAttempt[] = []
  let unscored = 0
  while (pipeline.pending > 0) {
    const group = await pipeline.next()
    unscored += group.unscored.length
    for (const { reward, trajectory } of group.members) {
      const isSolved = reward.total >= successAt
      attempts.push({ task: group.task, isSolved, reward, trajectory })
    }
  }
  return { ...summarise(attempts), unscored, attempts }
}

function summarise(attempts: readonly EvaluatedAttempt[]) {
  const scored = attempts.length
  const solved = attempts.filter(({ isSolved }) => isSolved).length
  const total = attempts.reduce((sum, { reward }) => sum + reward.total, 0)
  return {
    success: scored === 0 ? 0 : solved / scored,
    interval: scored === 0 ? { low: 0, high: 1 } : wilsonInterval(solved, scored),
    scored,
    meanReward: scored === 0 ? 0 : total / scored,
    sampledTokens: attempts.reduce((sum, { trajectory }) => sum + trajectory.usage.sampled, 0),
  }
}
