import type { Task } from '../../../base/core/environment.ts'
import type { RollParts } from '../../../run/run/roll-groups.ts'
import { defaults, withoutUndefined } from '../../../run/settings/settings.ts'
import { type SplitTasks, splitTasks, taskKey } from '../../../run/tasks/split-tasks.ts'
import type { TaskSource } from '../../../run/tasks/tasks.ts'
import type { LearningOptions } from '../train-options.ts'
import type { OpenFeed } from './feed.ts'
import { readStored, type Stored } from './stored.ts'

/** Who makes the groups that are learned from, and how many steps they are learned from in. */
interface LearnedFrom<Data> extends SplitTasks<Data> {
  readonly steps: number
  /** @default they are rolled from the tasks */
  readonly feed?: OpenFeed | undefined
  /** The stored run that has them. */
  readonly stored?: Stored
}

/** What is learned from, and the held-out tasks that measure it. */
export async function learnedFrom<Data>(
  tasks: TaskSource<Data> | undefined,
  parts: RollParts<Data>,
  options: LearningOptions<Data> & { readonly feed?: OpenFeed },
): Promise<LearnedFrom<Data>> {
  const { from, feed, steps = defaults.steps, tasksPerStep = defaults.tasksPerStep } = options
  if (from === undefined) {
    const split = feed ? noTasks : await tasksFor(tasks ?? [], parts, options)
    return { ...split, steps, feed }
  }
  const split = tasks === undefined ? noTasks : await tasksFor<Data>(tasks, parts, options)
  // Whatever the run holds of the tasks that measure, it is not learned from.
  const keyOf = (task: Task): string => taskKey(parts.environment, task as Task<Data>)
  const heldOut = new Set(split.heldOut.map(keyOf))
  const { counts, ...stored } = await readStored(from, parts, task => heldOut.has(keyOf(task)))
  const most = Math.min(steps, Math.ceil(counts.groups / tasksPerStep))
  options.tell?.(offPolicyLine(counts, most, options))
  const train = stored.tasks as readonly Task<Data>[]
  return { ...split, train, steps: most, feed: stored.feed, stored: counts }
}

/** Attempts from elsewhere bring their tasks. */
const noTasks: SplitTasks<never> = { train: [], heldOut: [], leftOut: 0 }

async function tasksFor<Data>(
  tasks: TaskSource<Data>,
  { environment, seed = defaults.seed, split }: RollParts<Data>,
  { heldOut, tell }: LearningOptions<Data>,
): Promise<SplitTasks<Data>> {
  const given = withoutUndefined({ split, heldOut })
  const tasksOf = await splitTasks(environment, tasks, { seed, ...given })
  if (tasksOf.leftOut > 0) tell?.(leftOutLine(tasksOf.leftOut))
  return tasksOf
}

function leftOutLine(count: number): string {
  return `${count} of the tasks that were made to train on are held out too and are left out of training`
}

/** Says that a stored run is learned from, and what corrects for that. */
function offPolicyLine(
  { run, groups, tokens }: Stored,
  steps: number,
  { proximal, importance = [] }: Pick<LearningOptions, 'proximal' | 'importance'>,
): string {
  const weighed = importance.filter(name => name !== 'none').join(' ')
  const corrected =
    weighed !== ''
      ? `--importance ${weighed} weighs what other weights sampled`
      : proximal === 'recompute'
        ? 'nothing weighs what other weights sampled; --importance token does'
        : 'only the clip of the loss holds what other weights sampled; --proximal recompute --importance token weighs it'
  return `off-policy: ${steps} steps from ${groups} groups of ${run}, ${tokens} sampled tokens; ${corrected}`
}
