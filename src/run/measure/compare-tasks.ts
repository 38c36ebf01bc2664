import { bootstrapInterval, type Interval } from '../../base/math/intervals.ts'
import { seedOf } from '../../base/math/random.ts'
import { mean } from '../../base/math/statistics.ts'

/** A run's results by task. */
export interface RunByTask {
  readonly run: string
  readonly tasks: ReadonlyMap<string, TaskMeans>
}

/** Means over the scored attempts at one task. */
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
    throw new Error(`${base.run} and ${run.run} have no scored task in common`)
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
    success: differenceOf(pairs, 'success'),
    reward: differenceOf(pairs, 'reward'),
    tokens: differenceOf(pairs, 'tokens'),
    gained: changed(false),
    lost: changed(true),
  }
}

function differenceOf(
  pairs: readonly (readonly [TaskMeans, TaskMeans])[],
  name: 'success' | 'reward' | 'tokens',
): Difference {
  const differences = pairs.map(([before, after]) => after[name] - before[name])
  return {
    before: mean(pairs.map(([before]) => before[name])),
    after: mean(pairs.map(([, after]) => after[name])),
    difference: mean(differences),
    ...bootstrapInterval(differences, { seed: seedOf('compare', name) }),
  }
}
