import { z } from 'zod'
import type { MakeTasksOptions, Task } from '../../base/core/environment.ts'
import type { TaskId } from '../../base/core/ids.ts'
import { random, seedOf, shuffle } from '../../base/math/random.ts'

/** A task for a world that is reset: the policy's first message, and the arguments of the reset. */
export const openEnvTask = z.object({
  prompt: z.string().optional(),
  /** Such as `seed`, or `split` and `index` of the server's own tasks. */
  reset: z.record(z.string(), z.unknown()).default({}),
})

/** A task for a world that is reset. */
export type OpenEnvTask = z.output<typeof openEnvTask>

/** The splits of worlds that differ only by their seed. */
export const seedSplits = ['train', 'held-out'] as const

/** Tasks of a server that has tasks of its own: so many of a split, in an order drawn by the seed. */
export function listedTasks(
  splits: ReadonlyMap<string, number>,
  { count, seed, split = splits.keys().next().value ?? '' }: MakeTasksOptions,
): readonly Task<OpenEnvTask>[] {
  const size = splits.get(split) ?? 0
  const order = shuffle(
    Array.from({ length: size }, (_, index) => index),
    random(seedOf('openenv', seed, split)),
  )
  return order.slice(0, count).map(index => ({
    id: `${split}-${index}` as TaskId,
    data: { reset: { split, index } },
  }))
}

/** Tasks that differ by the seed of their world: those of training are even, those held out odd. */
export function seededTasks({
  count,
  seed,
  split = seedSplits[0],
}: MakeTasksOptions): readonly Task<OpenEnvTask>[] {
  const last = split === 'held-out' ? 1 : 0
  return Array.from({ length: count }, (_, index) => {
    const drawn = 2 * (seedOf('openenv', seed, split, index).low >>> 2) + last
    return { id: `${split}-${index}` as TaskId, data: { reset: { seed: drawn } } }
  })
}
