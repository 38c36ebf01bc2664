import { expect, it } from 'vitest'
import { emptyTree, endAt } from '../../../../test/random-tree.ts'
import type { Group } from '../../../base/core/group.ts'
import type { GroupId, TaskId } from '../../../base/core/ids.ts'
import { given, sampled } from '../../../base/core/segment.ts'
import type { Gradable } from '../../../base/core/trajectory.ts'
import { root } from '../../../base/core/tree.ts'
import { countGroups } from './step-record.ts'

const sample = (length: number) =>
  sampled({
    ids: new Int32Array(length),
    logprobs: new Float32Array(length),
    version: { from: 0, to: 0 },
  })

it('a step counts what several endings of a tree share as sampled once', () => {
  const tree = emptyTree('t/0')
  const opening = tree.append(root, given('prompt', Int32Array.of(1)))
  const shared = tree.append(opening, sample(10))
  for (let leaf = 0; leaf < 3; leaf++) tree.end(endAt(tree, tree.append(shared, sample(2))))
  const members = tree.trajectories.map(trajectory => ({
    tree,
    trajectory: trajectory as Gradable,
    reward: { total: 1, parts: [] },
    dropped: null,
    advantage: 0,
    weight: 1,
  }))
  const group: Group = { id: 'g' as GroupId, task: 't' as TaskId, members, unscored: [] }
  expect(countGroups([group], 1)).toMatchObject({ sampledTokens: 16, success: 1, groups: 1 })
})
