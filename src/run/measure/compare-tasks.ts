import { SettingError } from '../../base/core/names/setting-error.ts'
import { type Cluster, clusteredChange } from '../../base/math/bounds/clustered.ts'
import { pairedDifference } from '../../base/math/bounds/paired.ts'
import type { Interval } from '../../base/math/intervals.ts'
import { mean } from '../../base/math/statistics.ts'

/** A run's results by task. */
export interface RunByTask {
  readonly run: string
  /** The reward from which on an attempt counted as a success. */
  readonly successAt: number
  readonly tasks: ReadonlyMap<string, TaskMeans>
}

/** Means over the scored attempts at one task, in which a tree is one attempt. */
export interface TaskMeans {
  readonly success: number
  readonly reward: number
  /** Sampled tokens per attempt. */
  readonly tokens: number
  readonly attempts: number
}

/** A mean difference over paired tasks, with the bounds that hold it at 95 %. */
export interface Difference extends Interval {
  readonly before: number
  readonly after: number
  readonly difference: number
}

/** One run against another, task by task. */
export interface Comparison {
  readonly base: string
  readonly run: string
  /** Tasks that both have. */
  readonly tasks: number
  /** Tasks that only one of them has; they are left out. */
  readonly unpaired: number
  readonly success: Difference
  readonly reward: Difference
  readonly tokens: Difference
  /** Solved by most attempts now and not before, and the other way round. */
  readonly gained: readonly string[]
  readonly lost: readonly string[]
}

/** Compares two runs on the tasks they share. */
export function compareRuns(base: RunByTask, run: RunByTask): Comparison {
  const shared = [...base.tasks.keys()].filter(task => run.tasks.has(task)).sort()
  if (shared.length === 0) {
    throw new SettingError(`${base.run} and ${run.run} have no scored task in common`)
  }
  if (base.successAt !== run.successAt) {
    throw new SettingError(
      `success is a reward of ${base.successAt} in ${base.run} and of ${run.successAt} in ${run.run}: say which with --success-at`,
    )
  }
  const pairs = shared.map(task => [base.tasks.get(task)!, run.tasks.get(task)!] as const)
  const isSolved = (means: TaskMeans): boolean => means.success > 0.5
  const changed = (from: boolean): readonly string[] =>
    shared.filter((_, index) => {
      const [before, after] = pairs[index]!
      return isSolved(before) === from && isSolved(after) !== from
    })
  return {
    base: base.run,
    run: run.run,
    tasks: shared.length,
    unpaired: base.tasks.size + run.tasks.size - 2 * shared.length,
    success: { ...differenceOf(pairs, 'success'), ...changeOf(pairs, 'success') },
    reward: rewardDifference(pairs),
    tokens: differenceOf(pairs, 'tokens'),
    gained: changed(false),
    lost: changed(true),
  }
}

type Pairs = readonly (readonly [before: TaskMeans, after: TaskMeans])[]

/** Bounds of a share that changed. */
function changeOf(pairs: Pairs, name: 'success' | 'reward'): Interval {
  const clusterOf = (means: TaskMeans): Cluster => ({ share: means[name], trials: means.attempts })
  return clusteredChange(pairs.map(([before, after]) => [clusterOf(before), clusterOf(after)]))
}

/** Rewards that are successes, or are bounded and do not spread, change as shares do. */
function rewardDifference(pairs: Pairs): Difference {
  const difference = differenceOf(pairs, 'reward')
  const all = pairs.flat()
  const isSuccess = all.every(({ success, reward }) => success === reward)
  const isBounded = all.every(({ reward }) => reward >= 0 && reward <= 1)
  const width = difference.high - difference.low
  const isOpen = width === 0 || width === Number.POSITIVE_INFINITY
  return isSuccess || (isBounded && isOpen)
    ? { ...difference, ...changeOf(pairs, 'reward') }
    : difference
}

function differenceOf(pairs: Pairs, name: 'success' | 'reward' | 'tokens'): Difference {
  const { value, low, high } = pairedDifference(
    pairs.map(([before, after]) => after[name] - before[name]),
  )
  return {
    before: mean(pairs.map(([before]) => before[name])),
    after: mean(pairs.map(([, after]) => after[name])),
    difference: value,
    low,
    high,
  }
}
