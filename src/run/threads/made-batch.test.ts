import { expect, it } from 'vitest'
import { randomTree } from '../../../test/random-tree.ts'
import type { Scored } from '../../core/group.ts'
import { treeToFrame } from '../../store/tree-frame.ts'
import { countTree, figuresOf } from '../../watch/tree-figures.ts'
import { type MadeBatch, openMadePost, readMadeBatch } from './made-batch.ts'

it('[S2] attempts that go together come out as they were made, each with its own bytes', async () => {
  const trees = Array.from({ length: 5 }, (_, seed) => randomTree(seed))
  const batches: MadeBatch[] = []
  await new Promise<void>(resolve => {
    const send = openMadePost(batch => {
      batches.push(structuredClone(batch))
      resolve()
    })
    trees.forEach((tree, id) => {
      const trajectory = tree.trajectories[0] as Scored['trajectory']
      const members = [{ tree, trajectory, reward: { total: id, parts: [] } }]
      send(id, { kind: 'made', trees: [tree], members, events: [] })
    })
  })
  expect(batches).toHaveLength(1)
  const read = readMadeBatch(batches[0]!)
  expect(read.map(({ id }) => id)).toEqual([0, 1, 2, 3, 4])
  for (const [id, { made }] of read.entries()) {
    const [tree] = made.trees
    expect(figuresOf(tree!)).toEqual(countTree(trees[id]!))
    expect(JSON.parse(made.lines![0]!)).toMatchObject({ kind: 'tree-end', tree: trees[id]!.id })
    expect(made.members).toMatchObject([{ reward: { total: id } }])
    // Read from its bytes, it is written as it was.
    expect(treeToFrame(tree!)).toEqual(treeToFrame(trees[id]!))
  }
})
