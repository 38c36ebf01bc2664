import { expect, it } from 'vitest'
import { randomTree } from '../../../../test/random-tree.ts'
import type { Group, Scored, Weighted } from '../../../base/core/group.ts'
import type { GroupId, TaskId } from '../../../base/core/ids.ts'
import type { Tree } from '../../../base/core/tree.ts'
import { encodeFrame } from '../../store/frame.ts'
import { groupRecord } from '../../store/group-record.ts'
import { treeToFrame, treeToRunFrame } from '../../store/tree-frame.ts'
import type { RunEvent } from '../../watch/events.ts'
import { countGroup } from '../../watch/group-figures.ts'
import { countTree, figuresOf } from '../../watch/tree-figures.ts'
import type { MadeTree } from '../elsewhere.ts'
import { type MadeBatch, makeMadePost } from './made-batch.ts'
import { readMadeBatch } from './read-batch.ts'

it('[S2] attempts that go together come out as they were made, each with its own bytes', async () => {
  const trees = Array.from({ length: 5 }, (_, seed) => randomTree(seed))
  const batches: MadeBatch[] = []
  await new Promise<void>(resolve => {
    const post = makeMadePost(batch => {
      batches.push(structuredClone(batch))
      resolve()
    })
    trees.forEach((tree, id) => {
      const trajectory = tree.trajectories[0] as Scored['trajectory']
      const members = [{ tree, trajectory, reward: { total: id, parts: [] } }]
      const scored: RunEvent = { kind: 'score-end', tree: tree.id, seconds: id }
      const retried: RunEvent = { kind: 'retry', problem: 'busy', attempt: 1, waitSeconds: id }
      const events = [scored, retried]
      post.addAttempt(id, { kind: 'made', trees: [tree], members, events }, 'alone')
    })
  })
  expect(batches).toHaveLength(1)
  const read = readMadeBatch(batches[0]!)
  expect(read.map(({ id }) => id)).toEqual([0, 1, 2, 3, 4])
  for (const [id, { piece }] of read.entries()) {
    const [{ tree, line, members }] = piece.trees as [MadeTree]
    expect(figuresOf(tree)).toEqual(countTree(trees[id]!))
    expect(JSON.parse(line)).toMatchObject({ kind: 'tree-end', tree: trees[id]!.id })
    expect(members).toMatchObject([{ reward: { total: id } }])
    expect(piece.lines).toMatch(/^{"time":"[^"]+","kind":"tree-end",.*}\n$/)
    expect([piece.count, piece.scoringSeconds]).toEqual([1, id])
    expect(piece.scores).toEqual([{ kind: 'score-end', tree: trees[id]!.id, seconds: id }])
    expect(piece.events).toMatchObject([{ kind: 'retry', waitSeconds: id }])
    // Read from its bytes, it is written as it was.
    expect(treeToFrame(tree)).toEqual(treeToFrame(trees[id]!))
  }
})

it('[S2] a group comes in pieces, its own frames together and its record behind them', async () => {
  const [one, other] = [randomTree(1), randomTree(2)]
  const batches: MadeBatch[] = []
  const weigh = (tree: Tree): Weighted => ({
    tree,
    trajectory: tree.trajectories[0] as Scored['trajectory'],
    ...{ reward: { total: 0.5, parts: [] }, dropped: null, advantage: 1, weight: 1 },
  })
  const task = { id: 'task' as TaskId, data: { question: 'long' } }
  const group: Group = {
    id: 'task' as GroupId,
    task: task.id,
    members: [one, other].map(weigh),
    unscored: [],
  }
  await new Promise<void>(resolve => {
    const post = makeMadePost(batch => {
      batches.push(structuredClone(batch))
      resolve()
    })
    const add = (id: number, tree: Tree): void => {
      const made = { trees: [tree], members: [weigh(tree)], events: [] }
      post.addAttempt(id, { kind: 'made', ...made }, 'in its group')
    }
    add(7, one)
    add(8, randomTree(3))
    add(7, other)
    post.addGroup(7, { group, task, order: 5 })
  })
  const read = readMadeBatch(batches[0]!)
  expect(read.map(({ id, piece }) => [id, piece.trees.length])).toEqual([
    [7, 2],
    [8, 1],
  ])
  const { bytes, notes, trees, group: made } = read[0]!.piece
  const frames = [treeToRunFrame(one), treeToRunFrame(other)]
  const record = groupRecord(group, task, 5)
  const whole = [...frames, { header: { kind: 'group', group: record }, arrays: [] }]
  expect(bytes).toEqual(Buffer.concat(whole.map(encodeFrame)))
  const sizes = frames.map(each => encodeFrame(each).length)
  expect(notes.map(([id, offset, size]) => [id, offset, size])).toEqual([
    [one.id, 0, sizes[0]],
    [other.id, sizes[0], sizes[1]],
  ])
  expect(trees.map(({ tree }) => treeToFrame(tree))).toEqual([one, other].map(treeToFrame))
  expect(trees[0]!.members).toMatchObject([{ reward: { total: 0.5 } }])
  expect(JSON.parse(made!.record)).toEqual(record)
  expect(made!.glance).toEqual({ rewards: [0.5, 0.5], dropped: 0, unscored: 0, isUseful: true })
  expect(made!.figures).toEqual(JSON.parse(JSON.stringify(countGroup(group))))
  expect(read[1]!.piece.bytes).toEqual(encodeFrame(treeToRunFrame(randomTree(3))))
})
