import { expect, it } from 'vitest'
import { emptyTree, endAt } from '../../../test/random-tree.ts'
import type { Group, Weighted } from '../../base/core/group.ts'
import type { GroupId, TaskId } from '../../base/core/ids.ts'
import { given, sampled } from '../../base/core/segment.ts'
import type { Gradable } from '../../base/core/trajectory.ts'
import { root } from '../../base/core/tree.ts'
import { makeMeasure } from './measure.ts'

/** A tree whose endings have these shares and rewards. */
function treeOf(name: string, endings: readonly (readonly [number, number])[]): Weighted[] {
  const tree = emptyTree(name)
  const place = tree.append(root, given('prompt', Int32Array.of(1)))
  return endings.map(([share, total]) => {
    const segment = sampled({
      ids: Int32Array.of(2),
      logprobs: Float32Array.of(-1),
      version: { from: 0, to: 0 },
    })
    tree.end(endAt(tree, tree.append(place, segment), { share }))
    const trajectory = tree.trajectories.at(-1) as Gradable
    return {
      tree,
      trajectory,
      reward: { total, parts: [] },
      dropped: null,
      advantage: 0,
      weight: 1,
    }
  })
}

it('the endings of a tree are one attempt', () => {
  const members = [
    ...treeOf('g/0', [
      [0.5, 1],
      [0.25, 0],
      [0.25, 0],
    ]),
    ...treeOf('g/1', [[1, 1]]),
  ]
  const group: Group = { id: 'g' as GroupId, task: 't' as TaskId, members, unscored: [] }
  const measure = makeMeasure()
  expect(measure.add(group)).toMatchObject({ trials: 2, successes: 1.5, rewards: [0.5, 1] })
  const { trials, success, passAtK, passHatK } = measure.result()
  expect(trials).toBe(2)
  expect(success.value).toBe(0.75)
  expect(Object.keys(passAtK)).toEqual(['1', '2'])
  expect(passAtK[2]!.value).toBe(1)
  expect(passHatK[2]!.value).toBe(0.5)
})
