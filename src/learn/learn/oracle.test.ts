import { expect, it } from 'vitest'
import { emptyTree, endAt } from '../../../test/random-tree.ts'
import { openByteRenderer } from '../../../test/rolling.ts'
import type { Group } from '../../base/core/group.ts'
import type { GroupId, TaskId } from '../../base/core/ids.ts'
import { type Policy, plainCapabilities } from '../../base/core/policy.ts'
import { given, sampled } from '../../base/core/segment.ts'
import type { Gradable } from '../../base/core/trajectory.ts'
import { root } from '../../base/core/tree.ts'
import { pathsOf } from '../../run/rows/paths.ts'
import { groupRows } from '../../run/rows/row-record.ts'
import { rewardsOf } from './embedded-trainer.ts'
import { oracleTokenBonus } from './oracle.ts'

const renderer = await openByteRenderer()
const opening = [{ role: 'user', content: 'go' }] as const
const prompt = renderer.render(opening, [])

/** Finds a token likelier by 1 behind the prompt of the oracle. */
const policy: Policy = {
  name: 'scorer',
  capabilities: { ...plainCapabilities, score: true },
  sample: () => Promise.reject(new Error('it only scores')),
  async score(ids, from) {
    const isPlain = prompt.every((id, at) => ids[at] === id)
    const logprobs = new Float32Array(ids.length - from).fill(isPlain ? -2 : -1)
    return { logprobs, basis: 'tempered', version: { from: 0, to: 0 } }
  },
  async [Symbol.asyncDispose]() {},
}

/** A tree whose endings share two tokens, with these rewards in this order. */
function groupOf(totals: readonly number[]): Group {
  const tree = emptyTree('g/0')
  const sample = (length: number) =>
    sampled({
      ids: new Int32Array(length).fill(65),
      logprobs: new Float32Array(length).fill(-1),
      version: { from: 0, to: 0 },
    })
  const fork = tree.append(tree.append(root, given('prompt', prompt)), sample(2))
  const members = totals.map(total => {
    const end = tree.append(fork, sample(1))
    const turns = [{ from: end.node, end, finish: { kind: 'stop' } as const, messages: 1 }]
    tree.end(endAt(tree, end, { turns, messages: [...opening] }))
    const trajectory = tree.trajectories.at(-1) as Gradable
    const reward = { total, parts: [] }
    return { tree, trajectory, reward, dropped: null, advantage: total, weight: 1 }
  })
  return { id: 'g' as GroupId, task: 't' as TaskId, members, unscored: [] }
}

/** What each trajectory's tokens are worth, by its reward. */
async function worth(totals: readonly number[]): Promise<unknown> {
  const group = groupOf(totals)
  const rows = groupRows(group)
  const bonus = oracleTokenBonus({ policy, renderer, promptOf: () => 'hint', coefficient: 1 })
  const { signal } = new AbortController()
  const bonuses = await bonus(rows, { signal, rewardOf: rewardsOf([group]) })
  const { paths } = pathsOf(
    rows.map(({ row }, index) => ({
      row,
      length: row.ids.length,
      ...(bonuses[index] && { bonus: bonuses[index] }),
    })),
  )
  return totals
    .map((total, path) => [
      total,
      ...paths.advantages.subarray(paths.offsets[path], paths.offsets[path + 1]),
    ])
    .sort(([a], [b]) => a! - b!)
}

it('the oracle bonus of shared tokens does not depend on the order of leaves', async () => {
  const expected = [
    [0, 0, 0, 0],
    [1, 2, 2, 2],
  ]
  expect(await worth([1, 0])).toEqual(expected)
  expect(await worth([0, 1])).toEqual(expected)
})
