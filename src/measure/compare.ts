import { bootstrapInterval, type Interval } from '../math/intervals.ts'
import { seedOf } from '../math/random.ts'
import { mean } from '../math/statistics.ts'
import { readManifest } from '../store/run-folder.ts'
import { openRunReader } from '../store/store.ts'

/** What a run came to on each of its tasks. */
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

/** Reads the means of a run by task; groups of one task are taken together. */
export async function readByTask(
  run: string,
  options: { readonly successAt?: number } = {},
): Promise<RunByTask> {
  const { config } = await readManifest(run)
  const at = options.successAt ?? (typeof config.successAt === 'number' ? config.successAt : 1)
  const sums = new Map<string, { success: number; reward: number; tokens: number; count: number }>()
  await using reader = await openRunReader(run)
  for await (const { group } of reader.groups()) {
    const sum = sums.get(group.task) ?? { success: 0, reward: 0, tokens: 0, count: 0 }
    for (const { reward, trajectory } of group.members) {
      sum.success += Number(reward.total >= at - 1e-9)
      sum.reward += reward.total
      sum.tokens += trajectory.usage.sampled
      sum.count++
    }
    if (sum.count > 0) sums.set(group.task, sum)
  }
  const tasks = [...sums].map(([task, { success, reward, tokens, count }]) => {
    const means = { success: success / count, reward: reward / count, tokens: tokens / count }
    return [task, { ...means, attempts: count }] as const
  })
  return { run, tasks: new Map(tasks) }
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
