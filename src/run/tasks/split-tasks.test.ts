import { describe, expect, it } from 'vitest'
import { z } from 'zod'
import type { TaskId } from '../../base/core/ids.ts'
import { environment } from '../../engine/environments/environment.ts'
import { openEnvironment } from '../../engine/environments/registry.ts'
import { splitTasks } from './split-tasks.ts'

/** An environment that makes the same tasks in each of its splits, as a benchmark with one test set does. */
function world(splits: readonly string[], perSplit = false) {
  return environment({
    name: 'world',
    task: z.object({ index: z.int(), split: z.string().optional() }),
    open: () => ({ opening: [{ role: 'user', content: 'go' }] }),
    splits,
    makeTasks: ({ count, split = splits[0]! }) =>
      Array.from({ length: count }, (_, number) => ({
        id: `${split}/${number}` as TaskId,
        data: { index: number % 50, ...(perSplit && { split }) },
      })),
  })
}

const seed = 1
const indexes = (tasks: readonly { data: { index: number } }[]) =>
  tasks.map(({ data }) => data.index)

describe('tasks are never trained on and evaluated on', () => {
  it('a split for evaluation is not trained on unless some of it is set aside', async () => {
    await expect(splitTasks(world(['test']), 32, { seed })).rejects.toThrow(
      /"test" of world is for evaluation.*--held-out N/,
    )
    await expect(splitTasks(world(['test', 'train'], true), 32, { seed })).rejects.toThrow(
      /--split train/,
    )
    const { train, heldOut } = await splitTasks(world(['test']), 70, { seed, heldOut: 10 })
    expect(heldOut).toHaveLength(10)
    const held = new Set(indexes(heldOut))
    expect(indexes(train).filter(index => held.has(index))).toEqual([])
  })

  it('of tasks that are there many times, a fifth of those that differ is set aside, all as often', async () => {
    const { heldOut } = await splitTasks(world(['train']), 500, { seed, heldOut: 30 })
    const times = new Map<number, number>()
    for (const index of indexes(heldOut)) times.set(index, (times.get(index) ?? 0) + 1)
    expect([...times.values()]).toEqual(new Array(10).fill(3))
  })

  it('a split that is trained on leaves another for evaluation', async () => {
    const made = await splitTasks(world(['test', 'train'], true), 32, {
      seed,
      split: 'train',
      heldOut: 8,
    })
    expect(made.train.every(({ data }) => data.split === 'train')).toBe(true)
    expect(made.heldOut.every(({ data }) => data.split === 'test')).toBe(true)
  })

  it('splits that hold the same tasks are refused, in whatever order their fields stand', async () => {
    const same = splitTasks(world(['train', 'test']), 32, { seed })
    await expect(same).rejects.toThrow(/32 of 32 tasks of the split "train" are in "test" too/)
  })

  it('what the environment says is the same task is', async () => {
    const named = {
      ...world(['base', 'test'], true),
      taskKey: ({ data }: { data: { index: number } }) => `${data.index}`,
    }
    await expect(splitTasks(named, 32, { seed })).rejects.toThrow(/32 of 32/)
  })

  it('tasks of a file that are held out by another are refused with the way out', async () => {
    const { readTask: _, ...rest } = world([])
    const open = { ...rest, readTask: (data: unknown) => data as { index: number } }
    const tasks = [1, 2, 3].map(index => ({ id: `a${index}`, index }))
    const heldOut = [{ id: 'other', index: 3 }]
    await expect(splitTasks(open, tasks, { seed, heldOut })).rejects.toThrow(
      /1 of 3 tasks to train on are held out.*"a3" first.*--held-out N/,
    )
  })

  it('made tasks that are held out too are left out of training, and counted', async () => {
    const calculator = await openEnvironment('calculator')
    const { train, heldOut, leftOut } = await splitTasks(calculator, 2000, { seed })
    const held = new Set(heldOut.map(({ data }) => JSON.stringify(data)))
    expect(train.filter(({ data }) => held.has(JSON.stringify(data)))).toEqual([])
    expect(train.length + leftOut).toBe(2000)
  })
})
