import type { Environment, Task } from '../../base/core/environment.ts'
import { commandLine } from '../../base/core/names/program-name.ts'
import { SettingError } from '../../base/core/names/setting-error.ts'
import { random, seedOf, shuffle } from '../../base/math/random.ts'
import { byTurns } from './mixed-tasks.ts'
import { readTasks, type TaskSource } from './tasks.ts'

/** How tasks are split. */
export interface SplitOptions<Data> {
  readonly seed: number
  /** Which split of the environment to train on. */
  readonly split?: string
  /** Tasks to evaluate on, or how many. */
  readonly heldOut?: TaskSource<Data>
}

/** Tasks to train on, and different ones to evaluate on. */
export interface SplitTasks<Data = unknown> {
  readonly train: readonly Task<Data>[]
  readonly heldOut: readonly Task<Data>[]
  /** The environment's split that the held-out tasks were made of. */
  readonly heldOutSplit?: string
  /** Tasks that were made for training and left out, since they were made for evaluation too. */
  readonly leftOut: number
}

/** The split that an environment makes for evaluation, by the names people give it. */
const heldOutNames = ['held-out', 'test', 'validation']

/** How many held-out tasks are made by default. */
const madeHeldOut = 512

/**
 * Splits tasks so that none is both trained and evaluated on. Tasks are equal if their data are, or if the
 * environment's `taskKey` says so. Given tasks that are in both parts are refused, with a hint; of tasks that an
 * environment makes, those that are held out are not trained on.
 */
export async function splitTasks<Data>(
  environment: Environment<Data>,
  source: TaskSource<Data>,
  { seed, heldOut, split }: SplitOptions<Data>,
): Promise<SplitTasks<Data>> {
  const read = async (from: TaskSource<Data>, of?: string): Promise<readonly Task<Data>[]> => {
    const tasks: Task<Data>[] = []
    const reading = { seed, ...(of !== undefined && { split: of }) }
    for await (const task of readTasks(environment, from, reading)) tasks.push(task)
    return tasks
  }
  const keyOf = (task: Task<Data>): string => taskKey(environment, task)
  const all = await read(source, split)
  if (heldOut !== undefined && typeof heldOut !== 'number') {
    return refuseShared({ train: all, heldOut: await read(heldOut), leftOut: 0 }, keyOf)
  }
  if (typeof source === 'number') {
    const { splits = [] } = environment
    const trained = split ?? splits[0]
    const name = heldOutNames.find(each => each !== trained && splits.includes(each))
    if (name !== undefined && !heldOutNames.includes(trained ?? '')) {
      const made = { train: all, heldOut: await read(heldOut ?? madeHeldOut, name) }
      return withoutShared(made, { keyOf, split: trained, name })
    }
    if (heldOut === undefined && heldOutNames.includes(trained ?? '')) {
      throw new SettingError(evaluationSplit(environment, trained!))
    }
  }
  const { mixed } = environment
  return holdOut(all, { seed, keyOf, wanted: heldOut, isMixed: mixed !== undefined })
}

/** The error for training on the split that benchmarks are measured by. */
function evaluationSplit(
  { name, splits = [] }: Pick<Environment, 'name' | 'splits'>,
  split: string,
): string {
  const others = splits.filter(each => !heldOutNames.includes(each))
  const way = others.length > 0 ? `--split ${others[0]} trains on another, and ` : ''
  return (
    `the split "${split}" of ${name} is for evaluation; a run that trained on it would be measured by ` +
    `tasks it has seen. ${way}--held-out N trains on it and sets N of its tasks aside`
  )
}

/** What is equal for equal tasks. */
export function taskKey<Data>(environment: Environment<Data>, task: Task<Data>): string {
  return environment.taskKey?.(task) ?? keyOfData(task)
}

/** A key of a task's data, which ignores its id and the order of fields. */
function keyOfData({ id, data }: Task): string {
  const { id: own, ...rest } = Object(data) as { readonly id?: unknown }
  return JSON.stringify(own === id ? rest : data, (_, value: unknown) =>
    typeof value === 'object' && value !== null && !Array.isArray(value)
      ? Object.fromEntries(Object.entries(value).sort(([a], [b]) => (a < b ? -1 : 1)))
      : value,
  )
}

type KeyOf<Data> = (task: Task<Data>) => string

function sharedTasks<Data>(
  { train, heldOut }: Pick<SplitTasks<Data>, 'train' | 'heldOut'>,
  keyOf: KeyOf<Data>,
): ReadonlySet<Task<Data>> {
  const measured = new Set(heldOut.map(keyOf))
  return new Set(train.filter(task => measured.has(keyOf(task))))
}

function refuseShared<Data>(tasks: SplitTasks<Data>, keyOf: KeyOf<Data>): SplitTasks<Data> {
  const shared = sharedTasks(tasks, keyOf)
  const [first] = shared
  if (first === undefined) return tasks
  throw new SettingError(
    `${shared.size} of ${tasks.train.length} tasks to train on are held out for evaluation too, task ` +
      `"${first.id}" first. Take them out of one of the two (\`${commandLine('tasks', 'dedupe')} FILE --against HELD-OUT ` +
      '--out NEW` does), or let --held-out N set N tasks aside',
  )
}

/** Removes held-out tasks from the training tasks; refuses splits that are mostly the same. */
function withoutShared<Data>(
  tasks: Pick<SplitTasks<Data>, 'train' | 'heldOut'>,
  { keyOf, split, name }: { keyOf: KeyOf<Data>; split: string | undefined; name: string },
): SplitTasks<Data> {
  const shared = sharedTasks(tasks, keyOf)
  const train = tasks.train.filter(task => !shared.has(task))
  if (2 * shared.size <= tasks.train.length) {
    return { ...tasks, train, heldOutSplit: name, leftOut: shared.size }
  }
  throw new SettingError(
    `${shared.size} of ${tasks.train.length} tasks of the split "${split}" are in "${name}" too, which is ` +
      'evaluated on. Train on another with --split NAME, or name tasks to evaluate on with --held-out FILE',
  )
}

interface HoldOut<Data> {
  readonly seed: number
  readonly keyOf: KeyOf<Data>
  /** How many were asked for. @default a fifth, at most 256 */
  readonly wanted: number | undefined
  /** Whether they are of several environments; of each as many are held out. */
  readonly isMixed: boolean
}

/**
 * Sets aside tasks that are never trained on, chosen by the seed. Equal ones stay together, and few that are
 * there many times would measure little: at least a fifth of those that differ are set aside, all about as often.
 */
function holdOut<Data>(
  tasks: readonly Task<Data>[],
  { seed, keyOf, wanted, isMixed }: HoldOut<Data>,
): SplitTasks<Data> {
  const count = wanted ?? Math.min(256, Math.floor(tasks.length / 5))
  const keys = new Map(tasks.map(task => [task, keyOf(task)]))
  const alike = new Map<string, Task<Data>[]>()
  for (const [task, key] of keys) {
    const equal = alike.get(key)
    if (equal) equal.push(task)
    else alike.set(key, [task])
  }
  const kinds = Math.min(count, Math.ceil(alike.size / 5))
  const chosen = new Map<string, readonly Task<Data>[]>()
  let copies = 0
  const shuffled = shuffle(tasks, random(seedOf(seed, 'held out')))
  for (const task of isMixed ? byTurns(shuffled) : shuffled) {
    const key = keys.get(task)!
    if (copies >= count && chosen.size >= kinds) break
    if (chosen.has(key)) continue
    chosen.set(key, alike.get(key)!)
    copies += alike.get(key)!.length
  }
  const heldOut = evenly([...chosen.values()], count)
  const train = tasks.filter(task => !chosen.has(keys.get(task)!))
  if (train.length > 0 && count > 0) {
    const places = new Map(tasks.map((task, place) => [task, place]))
    heldOut.sort((a, b) => places.get(a)! - places.get(b)!)
    return { train, heldOut, leftOut: 0 }
  }
  throw new SettingError(
    `${tasks.length} tasks are too few to hold ${wanted ?? 'a fifth'} of them out, where ` +
      `${alike.size} differ; give \`heldOut\` tasks of their own (--held-out FILE).`,
  )
}

/** As many of the lists' items as wanted, the first of every list before the second of any. */
function evenly<Item>(lists: readonly (readonly Item[])[], wanted: number): Item[] {
  const longest = Math.max(0, ...lists.map(({ length }) => length))
  const rounds = Array.from({ length: longest }, (_, round) =>
    lists.flatMap(list => list.slice(round, round + 1)),
  )
  return rounds.flat().slice(0, wanted)
}
