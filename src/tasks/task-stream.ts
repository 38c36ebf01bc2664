import type { Environment, Task } from '../core/environment.ts'
import { random, seedOf, shuffle } from '../math/random.ts'
import { SettingError } from '../names/setting-error.ts'
import { readTasks, type TaskSource } from './tasks.ts'

/** Tasks one after the other without end: every pass over them has an order of its own. */
export interface TaskStream<Data = unknown> {
  /** The task at a place, whatever was taken before. */
  at(place: number): Task<Data>
}

/** A stream over tasks; the order of a pass is a function of the seed and its number. */
export function openTaskStream<Data>(tasks: readonly Task<Data>[], seed: number): TaskStream<Data> {
  if (tasks.length === 0) throw new RangeError('There are no tasks to train on.')
  let known = -1
  let order: readonly Task<Data>[] = []
  return {
    at(place) {
      const pass = Math.floor(place / tasks.length)
      if (pass !== known) order = shuffle(tasks, random(seedOf(seed, 'pass', pass)))
      known = pass
      return order[place % tasks.length]!
    },
  }
}

/** Sets aside tasks that are never trained on; which ones is the seed's choice. */
function holdOut<Data>(
  tasks: readonly Task<Data>[],
  count: number,
  seed: number,
): { readonly train: readonly Task<Data>[]; readonly heldOut: readonly Task<Data>[] } {
  const chosen = new Set(shuffle(tasks, random(seedOf(seed, 'held out'))).slice(0, count))
  return {
    train: tasks.filter(task => !chosen.has(task)),
    heldOut: tasks.filter(task => chosen.has(task)),
  }
}

/** What tasks are split by. */
export interface SplitOptions<Data> {
  readonly seed: number
  /** Which split of the environment to train on. */
  readonly split?: string
  /** Tasks to evaluate on, or how many. */
  readonly heldOut?: TaskSource<Data>
}

/** The split that an environment makes for evaluation, by the names people give it. */
const heldOutNames = ['held-out', 'test', 'validation']

/** Tasks to train on, and others to evaluate on that none of them equals. */
export async function splitTasks<Data>(
  environment: Environment<Data>,
  source: TaskSource<Data>,
  { seed, heldOut, split }: SplitOptions<Data>,
): Promise<{ readonly train: readonly Task<Data>[]; readonly heldOut: readonly Task<Data>[] }> {
  const read = async (from: TaskSource<Data>, of?: string): Promise<readonly Task<Data>[]> => {
    const tasks: Task<Data>[] = []
    const reading = { seed, ...(of !== undefined && { split: of }) }
    for await (const task of readTasks(environment, from, reading)) tasks.push(task)
    return tasks
  }
  const all = await read(source, split)
  const name = environment.splits?.find(each => heldOutNames.includes(each))
  if (heldOut !== undefined && typeof heldOut !== 'number') {
    return { train: all, heldOut: await read(heldOut) }
  }
  if (name !== undefined && typeof source === 'number') {
    return { train: all, heldOut: await read(heldOut ?? 512, name) }
  }
  const count = heldOut ?? Math.min(256, Math.floor(all.length / 5))
  if (count >= all.length || count === 0) {
    throw new SettingError(
      `${all.length} tasks are too few to hold ${heldOut ?? 'a fifth'} of them out; give \`heldOut\` tasks of their own (--held-out FILE).`,
    )
  }
  return holdOut(all, count, seed)
}
