import type { Environment, Task } from '../../base/core/environment.ts'
import type { TaskId } from '../../base/core/ids.ts'

/** Tasks that clients choose from, by split. */
export interface TaskList {
  readonly splits: readonly string[]
  /** The tasks of a split, the first one if none is named. Throws if there is no such split. */
  of(split?: string): readonly Task[]
}

/** A client asked for something that does not exist. */
export class NotServedError extends Error {
  override name = 'NotServedError'
}

/** Tasks that were read, in one split. */
export function listOfTasks(tasks: readonly Task[], split = 'train'): TaskList {
  return {
    splits: [split],
    of(wanted = split) {
      if (wanted === split) return tasks
      throw new NotServedError(`no split "${wanted}": there is ${split}`)
    },
  }
}

/** Tasks that an environment makes: so many of each of its splits, when they are first asked for. */
export function listOfMadeTasks(
  environment: Environment,
  { count, seed }: { readonly count: number; readonly seed: number },
): TaskList {
  const splits = environment.splits ?? ['train']
  const made = new Map<string, readonly Task[]>()
  return {
    splits,
    of(wanted = splits[0] ?? 'train') {
      if (!splits.includes(wanted)) {
        throw new NotServedError(`no split "${wanted}": there are ${splits.join(', ')}`)
      }
      const split = environment.splits ? { split: wanted } : {}
      const known = made.get(wanted) ?? environment.makeTasks?.({ count, seed, ...split }) ?? []
      made.set(wanted, known)
      return known
    },
  }
}

/** What a reset or a session asks for. */
export interface Wanted {
  readonly split?: string | undefined
  readonly index?: number | undefined
  readonly task_id?: string | undefined
  readonly seed?: number | undefined
  /** The data of a task of the client's own. */
  readonly task?: unknown
}

/** Gives the task that is asked for: its data, its id, its place, one by the seed, or the next. */
export class TaskChoice {
  readonly #environment: Environment
  readonly #list: TaskList
  #next = 0
  #own = 0

  constructor(environment: Environment, list: TaskList) {
    this.#environment = environment
    this.#list = list
  }

  choose({ split, index, task_id: id, seed, task }: Wanted): Task {
    if (task !== undefined) return this.#read(task)
    const tasks = this.#list.of(split)
    if (tasks.length === 0) throw new NotServedError('there are no tasks: send one as `task`')
    if (id !== undefined) {
      const found = tasks.find(each => each.id === id)
      if (found) return found
      throw new NotServedError(`no task with the id "${id}"`)
    }
    if (index !== undefined && !tasks[index]) {
      throw new NotServedError(`no task ${index}: there are ${tasks.length}, from 0 on`)
    }
    return tasks[index ?? (seed ?? this.#next++) % tasks.length]!
  }

  #read(data: unknown): Task {
    const { id } = (data ?? {}) as { id?: unknown }
    try {
      const read = this.#environment.readTask(data)
      return { id: String(id ?? `own-${this.#own++}`) as TaskId, data: read }
    } catch (cause) {
      throw new NotServedError((cause as Error).message)
    }
  }
}
