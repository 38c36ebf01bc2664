import type { Environment, Task } from '../../base/core/environment.ts'
import { SettingError } from '../../base/core/names/setting-error.ts'
import { isAgent } from '../../engine/capture/agent.ts'
import type { Examples, ShownExamples } from '../../engine/rollout/world/examples.ts'
import { defaults } from '../settings/settings.ts'
import { readTasks, type TaskSource } from '../tasks/tasks.ts'
import type { Conversation } from './conversation.ts'
import { openDemonstrations } from './demonstrations.ts'

/** Demonstrations before each task; training goes from one number of them to another as success grows. */
export interface ExampleSchedule extends ShownExamples {
  /** Goes one nearer to the last number if most attempts of a step succeed, and one back if hardly any does. */
  learn(success: number): void
  /** Goes on with as many as an interrupted run had. */
  restore(count: number): void
}

/** What is asked for. */
export interface ShotsOptions {
  /** So many, or `N..M`: from N to M as success grows. */
  readonly shots?: number | string
  /** A file, a run, a function in a file, or the conversations themselves. */
  readonly demonstrations?: string | readonly Conversation[]
  readonly seed?: number
  readonly successAt?: number
  readonly signal?: AbortSignal
}

/** Shown if `--demonstrations` is given alone. */
const usualShots = 2
/** From this success on one example fewer is shown, and up to this one more again. */
const [enough, tooLittle] = [0.8, 0.1]

/** Opens the examples that are shown before every task; undefined if none are asked for. */
export async function openShots<Data>(
  environment: Environment<Data>,
  tasks: TaskSource<Data> | undefined,
  options: ShotsOptions,
): Promise<ExampleSchedule | undefined> {
  const demonstrations = options.demonstrations ?? ownOf(environment)
  if (options.shots === undefined && options.demonstrations === undefined) return undefined
  const { from, to } = readShots(options.shots ?? usualShots)
  const most = Math.max(from, to)
  if (most === 0) return undefined
  if (isAgent(environment)) {
    throw new SettingError(
      `--shots is for environments: agent "${environment.name}" decides itself what its model is shown`,
    )
  }
  if (demonstrations === undefined) {
    throw new SettingError(`--shots ${most} needs --demonstrations FILE, RUN or FILE#EXPORT`)
  }
  const found =
    typeof demonstrations === 'string'
      ? await openDemonstrations(demonstrations, {
          environment: environment as Environment,
          tasks: await someTasks(environment, tasks, { ...options, most }),
          signal: options.signal ?? new AbortController().signal,
          successAt: options.successAt ?? defaults.successAt,
        })
      : demonstrations
  return schedule(choose(found, most), { from, to })
}

/** Reads a number of examples, or two of them as `N..M`. */
function readShots(given: number | string): { readonly from: number; readonly to: number } {
  const [, from, , to] = /^(\d+)(\.\.(\d+))?$/.exec(String(given)) ?? []
  if (from === undefined)
    throw new SettingError(`--shots ${given}: write N or N..M, such as 2 or 2..0`)
  return { from: Number(from), to: Number(to ?? from) }
}

/** The environment's own conversations, if it brings some. */
function ownOf({ demonstrations }: Pick<Environment<never>, 'demonstrations'>) {
  return demonstrations?.map((messages): Conversation => ({ messages, tools: [] }))
}

/** Refuses a number that changes if nothing learns. */
export function refuseChangingShots(given: number | string = usualShots): void {
  const { from, to } = readShots(given)
  if (from === to) return
  throw new SettingError(`--shots ${given} is for train, where success grows: name one number`)
}

function schedule(
  pool: Examples['pool'],
  { from, to }: { readonly from: number; readonly to: number },
): ExampleSchedule {
  let now: Examples = { pool, count: from }
  const move = (by: number): void => {
    const count = Math.min(Math.max(from, to), Math.max(Math.min(from, to), now.count + by))
    if (count !== now.count) now = { pool, count }
  }
  return {
    get now() {
      return now
    },
    learn(success) {
      if (success >= enough) move(Math.sign(to - from))
      else if (success <= tooLittle) move(Math.sign(from - to))
    },
    restore: count => move(count - now.count),
  }
}

/** The first ones of different tasks, and one more in place of that which solves the task itself. */
function choose(found: readonly Conversation[], most: number): Examples['pool'] {
  const seen = new Set<string>()
  const different = found.filter(({ task }) => {
    const isNew = task === undefined || !seen.has(task)
    if (task !== undefined) seen.add(task)
    return isNew
  })
  if (different.length < most) {
    throw new SettingError(
      `--shots ${most}: there are only ${different.length} demonstrations of different tasks`,
    )
  }
  const pool = different.map(({ messages, task }) => ({ messages, ...(task && { task }) }))
  return pool.slice(0, pool.some(({ task }) => task) ? most + 1 : most)
}

/** Tasks for a function to show: made apart from those that are attempted, or the first of these. */
async function someTasks<Data>(
  environment: Environment<Data>,
  source: TaskSource<Data> | undefined,
  { most, seed = defaults.seed }: ShotsOptions & { readonly most: number },
): Promise<readonly Task[]> {
  if (environment.makeTasks) return environment.makeTasks({ count: most + 1, seed: seed + 1 })
  if (typeof source !== 'string' && !Array.isArray(source)) return []
  const tasks: Task[] = []
  for await (const task of readTasks(environment, source as TaskSource<Data>, { seed })) {
    tasks.push(task)
    if (tasks.length > most) break
  }
  return tasks
}
