import type { Task } from '../../base/core/environment.ts'
import type { TaskId } from '../../base/core/ids.ts'
import { random, seedOf, shuffle } from '../../base/math/random.ts'

/** Tasks one after the other without end: every pass over them has an order of its own. */
export interface TaskStream<Data = unknown> {
  /**
   * The task at a place; places below 0 are for tasks that are drawn besides, such as refills. Where tasks are
   * drawn and not passed through, those in `taken` are drawn again only if no other is left.
   */
  at(place: number, taken?: ReadonlySet<TaskId>): Task<Data>
}

/** A stream that has every task once in each pass; the order of a pass is a function of the seed and its number. */
export function makeTaskStream<Data>(tasks: readonly Task<Data>[], seed: number): TaskStream<Data> {
  let known = -1
  let order: readonly Task<Data>[] = []
  return {
    at(place) {
      if (tasks.length === 0) throw new RangeError('There are no tasks to train on.')
      const pass = Math.floor(place / tasks.length)
      if (pass !== known) order = shuffle(tasks, random(seedOf(seed, 'pass', pass)))
      known = pass
      return order[place % tasks.length]!
    },
  }
}
