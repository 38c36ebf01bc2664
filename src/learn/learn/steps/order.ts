import type { Task } from '../../../base/core/environment.ts'
import type { GroupId, TaskId } from '../../../base/core/ids.ts'
import type { TaskSampler } from '../../../run/tasks/sample-tasks.ts'

/** The place of a group among all that a run begins, and its task. */
export interface Placed<Data = unknown> {
  readonly order: number
  readonly task: Task<Data>
}

/** What was begun ahead of learning, as it is kept with a checkpoint. */
export interface OrderMemory {
  /** How many groups were begun, and how many tasks drawn. */
  readonly begun: number
  readonly drawn: number
  /** Groups that nothing was learned from yet. */
  readonly open: readonly { readonly order: number; readonly task: TaskId }[]
  /** Tasks that are to come again. */
  readonly again: readonly TaskId[]
}

/** What an order goes on from. */
export interface OrderOptions {
  readonly tasksPerStep: number
  /** The first step that is fed. */
  readonly first: number
  /** Where a run that was interrupted goes on. */
  readonly before?: OrderMemory | undefined
}

/** Says which group is begun next, so that every task that was drawn is learned from. */
export function makeOrder<Data>(
  tasks: Pick<TaskSampler<Data>, 'at' | 'find'>,
  { tasksPerStep, first, before }: OrderOptions,
) {
  const start = (first - 1) * tasksPerStep
  const again = (before?.again ?? []).flatMap(id => tasks.find(id) ?? [])
  /** What was in flight when the run was interrupted is begun again, in its own place. */
  const left = (before?.open ?? []).flatMap(({ order, task: id }): Placed<Data>[] => {
    const task = tasks.find(id)
    return task ? [{ order, task }] : []
  })
  let { begun, drawn } = before ?? { begun: start, drawn: start }
  return {
    /** The next group; tasks in `taken` are under way. */
    next(
      taken: ReadonlySet<TaskId>,
    ): Placed<Data> & { readonly id: GroupId; readonly step: number } {
      // A task that comes again takes no other's place.
      const { order, task } = left.shift() ?? {
        order: begun++,
        task: again.shift() ?? tasks.at(drawn++, taken),
      }
      const step = 1 + Math.floor(order / tasksPerStep)
      const id = `${step}/${order % tasksPerStep}/${task.id}` as GroupId
      return { order, task, id, step }
    },
    /** These tasks come before all others. */
    repeat(more: Iterable<Task<Data>>): void {
      again.push(...more)
    },
    /** What is needed to go on, if nothing was learned from these yet. */
    memory(unlearned: Iterable<Placed<Data>>): OrderMemory {
      const open = [...new Set([...unlearned, ...left])]
        .map(({ order, task }) => ({ order, task: task.id }))
        .sort((one, other) => one.order - other.order)
      return { begun, drawn, open, again: again.map(({ id }) => id) }
    },
  }
}
