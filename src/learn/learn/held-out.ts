import type { Task } from '../../base/core/environment.ts'
import {
  type Filter,
  heldOutFilter,
  reasonsUnscored,
  type Unscored,
} from '../../base/core/group.ts'
import type { GroupId } from '../../base/core/ids.ts'
import type { Reward } from '../../base/core/reward.ts'
import { isSampled } from '../../base/core/segment.ts'
import type { Trajectory } from '../../base/core/trajectory.ts'
import type { Tree } from '../../base/core/tree.ts'
import { attemptMeans, succeeds } from '../../base/math/attempts.ts'
import { type Cluster, clusteredInterval } from '../../base/math/bounds/clustered.ts'
import type { Interval } from '../../base/math/intervals.ts'
import { mean } from '../../base/math/statistics.ts'
import { openRollPipeline, type RollParts } from '../../run/run/roll-groups.ts'
import type { EnvironmentOf } from '../../run/tasks/mixed-tasks.ts'

/** How well a policy does on tasks it was not trained on. */
export interface Evaluation {
  /** The share of solved attempts, task by task, and of these the mean; a tree is one attempt. */
  readonly success: number
  /** With 95 % confidence, for tasks like these. */
  readonly interval: Interval
  readonly scored: number
  /** Attempts that failed outside the policy; they count neither way. */
  readonly unscored: number
  /** The most frequent reason of those failures. */
  readonly failure?: string
  readonly meanReward: number
  readonly sampledTokens: number
  /** The weights that sampled, if they changed meanwhile. */
  readonly versions?: { readonly from: number; readonly to: number }
  /** Environment by environment, if there are several. */
  readonly byEnvironment?: Readonly<Record<string, Measured>>
  readonly attempts: readonly EvaluatedAttempt[]
}

/** How well a policy does on some of the tasks. */
export type Measured = Pick<Evaluation, 'success' | 'interval' | 'scored' | 'meanReward'>

/** One held-out task as it went. */
export interface EvaluatedAttempt {
  readonly task: string
  readonly isSolved: boolean
  readonly reward: Reward
  readonly trajectory: Trajectory
}

/** What an evaluation needs besides the parts. */
export interface EvaluationOptions {
  /** Names it in the ids of its groups. */
  readonly name: string
  /** The reward from which on a task counts as solved. */
  readonly successAt: number
  /** Where its groups stand in the run's order. */
  readonly order: number
  readonly step?: number
  /** Whether attempts are chains, or rolled as training rolls them. @default chains if trees are rolled */
  readonly strategy?: EvaluationStrategy
  /** Whose task each is, if there are several environments. */
  readonly environmentOf?: EnvironmentOf
}

/** How held-out tasks are attempted. */
export type EvaluationStrategy = 'chain' | 'same'

/** Keeps evaluations in the journal and out of every loss. */
const notTrained: Filter = {
  name: heldOutFilter,
  judge: group =>
    new Map(
      group.members.map(({ trajectory }) => [
        trajectory.id,
        { reason: 'held out', from: 'loss-and-statistics' } as const,
      ]),
    ),
}

/** The parts for held-out attempts: chains even if training rolls trees, unless `same` is asked for. */
function asMeasured<Data>(
  { scorers: _, ...parts }: RollParts<Data>,
  asked?: EvaluationStrategy,
): RollParts<Data> {
  const isTree = (parts.leaves ?? 1) > 1
  if (asked === 'same' || (asked === undefined && !isTree)) return parts
  const { strategy: _strategy, leaves: _leaves, ...rest } = parts
  return rest
}

/** Rolls every held-out task once, at the run's own sampling. */
export async function evaluateHeldOut<Data>(
  tasks: readonly Task<Data>[],
  parts: RollParts<Data>,
  options: EvaluationOptions,
): Promise<Evaluation> {
  const { name, successAt, order, step } = options
  await using pipeline = openRollPipeline({
    ...asMeasured(parts, options.strategy),
    group: 1,
    filters: [notTrained],
  })
  tasks.forEach((task, index) => {
    pipeline.submit({
      id: `${name}/${task.id}` as GroupId,
      task,
      order: order + index,
      ...(step !== undefined && { step }),
    })
  })
  // A list may name a task several times, each with an id of its own: those are attempts at one task.
  const datumOf = new Map(tasks.map(({ id, data }) => [id, JSON.stringify(data)]))
  const attempts: EvaluatedAttempt[] = []
  const endings: Ending[] = []
  const unscored: Unscored[] = []
  while (pipeline.pending > 0) {
    const group = await pipeline.next()
    if (group.members.length === 0) unscored.push(...group.unscored)
    for (const { reward, trajectory, tree } of group.members) {
      const isSolved = succeeds(reward.total, successAt)
      attempts.push({ task: group.task, isSolved, reward, trajectory })
      const of = datumOf.get(group.task)!
      const ending = { of, tree, share: trajectory.share, isSolved, reward: reward.total }
      endings.push({ ...ending, environment: options.environmentOf?.(group.task) })
    }
  }
  const [first] = reasonsUnscored({ unscored })
  return {
    ...summarise(endings),
    ...(options.environmentOf && { byEnvironment: summariseEach(endings) }),
    sampledTokens: tokensOf(attempts),
    ...versionsOf(endings),
    unscored: unscored.length,
    ...(first && { failure: first.reason }),
    attempts,
  }
}

interface Ending {
  /** What its task is. */
  readonly of: string
  readonly tree: Tree
  readonly share: number
  readonly isSolved: boolean
  readonly reward: number
  readonly environment: string | undefined
}

function versionsOf(endings: readonly Ending[]): Pick<Evaluation, 'versions'> {
  const segments = endings.flatMap(({ tree }) => tree.nodes.map(({ segment }) => segment))
  const seen = segments.filter(isSampled).map(({ version }) => version)
  const from = seen.reduce((least, version) => Math.min(least, version.from), Infinity)
  const to = seen.reduce((most, version) => Math.max(most, version.to), -Infinity)
  return from < to ? { versions: { from, to } } : {}
}

function summariseEach(endings: readonly Ending[]): Record<string, Measured> {
  const names = new Set(endings.map(({ environment }) => environment!))
  return Object.fromEntries(
    [...names]
      .sort()
      .map(name => [name, summarise(endings.filter(({ environment }) => environment === name))]),
  )
}

function tokensOf(attempts: readonly EvaluatedAttempt[]): number {
  return attempts.reduce((sum, { trajectory }) => sum + trajectory.usage.sampled, 0)
}

/** Every task counts alike, however often it is among the held-out ones. */
function summarise(endings: readonly Ending[]): Measured {
  const solved = clustersOf(endings, ({ isSolved }) => Number(isSolved))
  const rewards = clustersOf(endings, ({ reward }) => reward)
  return {
    success: meanOf(solved),
    interval: clusteredInterval(solved),
    scored: solved.reduce((sum, { trials }) => sum + trials, 0),
    meanReward: meanOf(rewards),
  }
}

const meanOf = (clusters: readonly Cluster[]): number =>
  clusters.length === 0 ? 0 : mean(clusters.map(({ share }) => share))

function clustersOf(
  endings: readonly Ending[],
  measure: (ending: Ending) => number,
): readonly Cluster[] {
  const tasks = [...new Set(endings.map(({ of }) => of))]
  return tasks.map(task => {
    const own = endings.filter(({ of }) => of === task)
    const values = attemptMeans(own.map(each => ({ ...each, value: measure(each) })))
    return { share: mean(values), trials: values.length }
  })
}
