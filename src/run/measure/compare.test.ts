import { mkdtempSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { emptyTree, endAt } from '../../../test/random-tree.ts'
import type { Group, Weighted } from '../../base/core/group.ts'
import type { GroupId, TaskId } from '../../base/core/ids.ts'
import { given, sampled } from '../../base/core/segment.ts'
import type { Gradable } from '../../base/core/trajectory.ts'
import { root } from '../../base/core/tree.ts'
import { newManifest } from '../store/manifest.ts'
import { createRun } from '../store/run-folder.ts'
import { openRunWriter } from '../store/store.ts'
import { readByTask } from './compare.ts'
import { compareRuns } from './compare-tasks.ts'
import { measureRun } from './measure.ts'

/** Endings of one tree, each with its share of it and its reward. */
type Endings = readonly (readonly [share: number, reward: number])[]

interface Written {
  readonly id?: string
  readonly task: string
  readonly trees: readonly Endings[]
  readonly step?: number
  readonly isOther?: boolean
}

function groupOf({ task, trees, step, isOther = false, id = task }: Written): Group {
  const dropped = isOther ? ({ filter: 'seat', reason: 'played', from: 'loss' } as const) : null
  const members = trees.flatMap((endings, member): Weighted[] => {
    const tree = emptyTree(`${id}/${member}`)
    const place = tree.append(root, given('prompt', Int32Array.of(1)))
    const sample = { ids: Int32Array.of(2), logprobs: null, version: { from: 0, to: 0 } }
    return endings.map(([share, total]) => {
      tree.end(endAt(tree, tree.append(place, sampled(sample)), { share }))
      const trajectory = tree.trajectories.at(-1) as Gradable
      return { tree, trajectory, reward: { total, parts: [] }, dropped, advantage: 0, weight: 1 }
    })
  })
  const stepped = step === undefined ? {} : { step }
  return { id: id as GroupId, task: task as TaskId, ...stepped, members, unscored: [] }
}

const scratch = mkdtempSync(join(tmpdir(), 'espalier-compare-'))
let count = 0

async function runOf(kind: string, written: readonly Written[], config = {}): Promise<string> {
  const folder = join(scratch, `${count++}`)
  await using writer = await openRunWriter(
    folder,
    await createRun(folder, newManifest(kind, config)),
  )
  for (const [order, each] of written.entries()) {
    const group = groupOf(each)
    for (const tree of new Set(group.members.map(member => member.tree)))
      await writer.writeTree(tree)
    await writer.writeGroup(group, { id: group.task, data: {} }, order)
  }
  return folder
}

const chain = (reward: number): Endings => [[1, reward]]

describe('what a comparison reads', () => {
  it('is what an evaluation measures: endings by their share, and no seat of another', async () => {
    const forked: Endings = [
      [0.5, 1],
      [0.25, 0],
      [0.25, 0],
    ]
    const run = await runOf('roll', [
      { task: 'a', trees: [forked, chain(1)] },
      { id: 'a#hider', task: 'a', trees: [chain(0), chain(0)], isOther: true },
      { task: 'b', trees: [chain(0.7 + 0.2 + 0.1), chain(0)] },
    ])
    const { tasks } = await readByTask(run)
    expect(tasks.get('a')).toMatchObject({ success: 0.75, attempts: 2 })
    expect(tasks.get('b')).toMatchObject({ success: 0.5, attempts: 2 })
    const measured = await measureRun(run)
    const means = [...tasks.values()].map(({ success }) => success)
    expect(measured.success.value).toBe(means.reduce((sum, each) => sum + each, 0) / 2)
  })

  it('is a part of a training run, whose name is asked for', async () => {
    const measured = (step: number, reward: number): Written => ({
      id: `evaluation-${step}/h`,
      task: 'h',
      step,
      trees: [chain(reward)],
    })
    const run = await runOf('train', [
      measured(0, 0),
      { id: '1/0/t', task: 't', step: 1, trees: [chain(1)] },
      measured(1, 0),
      measured(2, 1),
    ])
    const successOf = async (part: string, task = 'h') =>
      (await readByTask(`${run}@${part}`)).tasks.get(task)?.success
    expect(await successOf('before')).toBe(0)
    expect(await successOf('1')).toBe(0)
    expect(await successOf('after')).toBe(1)
    expect(await successOf('training', 't')).toBe(1)
    expect(await successOf('training')).toBeUndefined()
    const known = 'Say which part of it, of @before, @after, @0, @1, @2, @training'
    await expect(readByTask(run)).rejects.toThrow(known)
    await expect(readByTask(`${run}@7`)).rejects.toThrow(`it has no part "7". ${known}`)
    const rolled = await runOf('roll', [{ task: 'a', trees: [chain(1)] }])
    await expect(readByTask(`${rolled}@after`)).rejects.toThrow('only training runs have parts')
  })

  it('is not compared under two meanings of success', async () => {
    const written = [{ task: 'a', trees: [chain(0.5)] }]
    const [one, half] = [
      await runOf('roll', written),
      await runOf('roll', written, { successAt: 0.5 }),
    ]
    const sides = [await readByTask(one), await readByTask(half)] as const
    expect(() => compareRuns(...sides)).toThrow('say which with --success-at')
    const options = { successAt: 0.5 }
    const same = compareRuns(await readByTask(one, options), await readByTask(half, options))
    expect(same.success).toMatchObject({ before: 1, after: 1, difference: 0 })
    expect(same.success.low).toBeLessThan(0)
    expect(same.success.high).toBeGreaterThan(0)
  })
})
