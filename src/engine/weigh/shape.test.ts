import { describe, expect, it } from 'vitest'
import { emptyTree, endAt } from '../../../test/random-tree.ts'
import type { Group, Judged } from '../../base/core/group.ts'
import type { GroupId, TaskId } from '../../base/core/ids.ts'
import { rowsOf } from '../../base/core/row.ts'
import { given, sampled } from '../../base/core/segment.ts'
import type { Gradable } from '../../base/core/trajectory.ts'
import { root, type Tree } from '../../base/core/tree.ts'
import { grpoAdvantages } from '../../base/math/advantages/grpo.ts'
import { creditsOf } from '../../run/rows/row-record.ts'
import { comparedAnew } from './batch-scale.ts'
import { makeEstimate } from './estimate.ts'
import { weigh } from './gather.ts'
import { type Shaping, shapedEstimate } from './shape.ts'
import { readShaping } from './shaping.ts'

interface Numbers {
  readonly own: readonly number[]
  readonly other?: readonly number[]
}

/** A segment with its policy's numbers, and those of a reference and a teacher, which agree. */
function segment({ own, other }: Numbers) {
  const others = other && {
    reference: Float32Array.from(other),
    teacher: Float32Array.from(other),
  }
  return sampled({
    ids: Int32Array.from(own, (_, index) => index),
    logprobs: Float32Array.from(own),
    version: { from: 0, to: 0 },
    ...(others && { others }),
  })
}

/** A tree with one shared segment and an ending for each other one. */
function bush(name: string, shared: Numbers, leaves: readonly Numbers[]): Tree {
  const tree = emptyTree(name)
  const from = tree.append(tree.append(root, given('prompt', Int32Array.of(1))), segment(shared))
  for (const leaf of leaves) {
    const usage = { sampled: shared.own.length + leaf.own.length, prompt: 1 }
    tree.end(endAt(tree, tree.append(from, segment(leaf)), { usage }))
  }
  return tree
}

function groupOf(tree: Tree, totals: readonly number[]): Group<Judged> {
  const members = totals.map((total, index) => ({
    tree,
    trajectory: tree.trajectories[index] as Gradable,
    reward: { total, parts: [] },
    dropped: null,
  }))
  return { id: 'g' as GroupId, task: 't' as TaskId, members, unscored: [] }
}

const weighed = (group: Group<Judged>, shaping: Shaping) =>
  weigh(group, { estimate: shapedEstimate(makeEstimate('grpo'), shaping), weighting: 'uniform' })

const shared = { own: [-1, -2], other: [-0.5, -3] }
const leaves = [
  { own: [-1], other: [-0.25] },
  { own: [-0.5, -4], other: [-0.5, -1] },
]
const tree = bush('g/0', shared, leaves)

describe('on-policy distillation', () => {
  const rowsWith = (shaping: Shaping) => {
    const group = weighed(groupOf(tree, [1, 0]), shaping)
    return rowsOf(tree, { credits: creditsOf(group, tree) }).map(({ advantages }) => [
      ...advantages,
    ])
  }

  it('alone, a token is worth how much likelier the teacher finds it', () => {
    expect(rowsWith({ distillation: { mode: 'alone', coefficient: 2 } })).toEqual([
      [0, 1, -2, 1.5],
      [0, 0, 0, 0, 6],
    ])
  })

  it('added, that comes on top of what the group says', () => {
    const [first, second] = rowsWith({ distillation: { mode: 'added', coefficient: 1 } })
    const [up] = grpoAdvantages([
      { group: 0, trajectory: 0, reward: 1 },
      { group: 0, trajectory: 1, reward: 0 },
    ])
    // On shared tokens the two comparisons cancel.
    expect(first!.slice(1, 3)).toEqual([0.5, -1])
    expect(first![3]).toBeCloseTo(up! + 0.75, 6)
    expect(second![4]).toBeCloseTo(-up! + 3, 6)
  })

  it('a trajectory that nobody scored is refused by name', () => {
    const bare = bush('g/1', { own: [-1] }, [{ own: [-1] }])
    const shaping = { distillation: { mode: 'alone', coefficient: 1 } } as const
    expect(() => weighed(groupOf(bare, [1]), shaping)).toThrow(/g\/1.* --teacher POLICY/)
  })
})

describe('shaped rewards', () => {
  const advantages = (totals: readonly number[], shaping: Shaping) =>
    weighed(groupOf(tree, totals), shaping).members.map(({ advantage }) => advantage)
  const expected = (rewards: readonly number[]) =>
    grpoAdvantages(rewards.map((reward, trajectory) => ({ group: 0, trajectory, reward })))

  it('are compared without what the divergence from the reference costs', () => {
    // Σ (own − other): −0.5 + 1 on the shared tokens, then −0.75, and 0 − 3.
    const kl = { coefficient: 0.1 }
    const wanted = expected([1 + 0.025, 0 + 0.25])
    advantages([1, 0], { kl }).forEach((advantage, index) => {
      expect(advantage).toBeCloseTo(wanted[index]!, 9)
    })
  })

  it('and without what length costs; the rewards that are kept stay', () => {
    const shaping = { overlong: { maximum: 4, buffer: 2 } }
    expect(advantages([1, 0], shaping)).toEqual(expected([1 - 0.5, 0 - 1]))
    const { members } = weighed(groupOf(tree, [1, 0]), shaping)
    expect(members.map(({ reward }) => reward.total)).toEqual([1, 0])
  })

  it('lengths alone decide nothing, unless they are told to', () => {
    const overlong = { maximum: 4, buffer: 2 }
    expect(advantages([0, 0], { overlong })).toEqual([0, 0])
    expect(advantages([0, 0], { overlong: { ...overlong, alone: true } })).toEqual(
      expected([-0.5, -1]),
    )
    const read = readShaping({
      overlong: 'soft:maximum=4,buffer=2,alone=true',
      has: { reference: false, teacher: false },
    })
    expect(read.overlong).toMatchObject({ alone: true })
  })
})

describe('shaping where a whole step is compared', () => {
  const other = bush('g/1', shared, leaves)
  const batchOf = (shaping: Shaping) => {
    const estimate = shapedEstimate(makeEstimate('grpo:scale=batch'), shaping)
    const groups = [groupOf(tree, [1, 0]), groupOf(other, [0, 0])]
    const { batch } = estimate
    const spread = batch!.spreadOf(groups.map(group => batch!.rewardsOf(group, 'uniform')))
    const weighedAll = groups.map(group => weigh(group, { estimate, weighting: 'uniform' }))
    return weighedAll.map(group => comparedAnew(group, batch!.over(spread), 'uniform'))
  }

  it('the spread is that of the shaped rewards', () => {
    const overlong = { maximum: 4, buffer: 2, alone: true }
    const rewards = [1 - 0.5, 0 - 1, 0 - 0.5, 0 - 1]
    const entries = rewards.map((reward, index) => ({
      group: index < 2 ? 0 : 1,
      trajectory: index,
      reward,
    }))
    const given = batchOf({ overlong }).flatMap(({ members }) => members.map(m => m.advantage))
    grpoAdvantages(entries, { scale: 'batch' }).forEach((advantage, index) => {
      expect(given[index]).toBeCloseTo(advantage!, 12)
    })
  })

  it('what a teacher says is added to what was divided', () => {
    const [alone] = batchOf({})
    const [both] = batchOf({ distillation: { mode: 'added', coefficient: 1 } })
    const { advantage } = alone!.members[0]!
    // The teacher finds the last token of the first ending 0.75 nats likelier.
    expect(both!.members[0]!.stretches!.at(-1)!.advantage).toBeCloseTo(advantage! + 0.75, 12)
  })
})

it('[T1] a token for which a policy gave no number costs nothing and is taught nothing', () => {
  const gap = bush('g/2', { own: [-1, Number.NaN], other: [-0.5, -3] }, leaves)
  const kl = weighed(groupOf(gap, [1, 0]), { kl: { coefficient: 0.1 } })
  // Σ (own − other) is −0.5 on the shared tokens, then −0.75, and 0 − 3.
  const wanted = grpoAdvantages([
    { group: 0, trajectory: 0, reward: 1 + 0.125 },
    { group: 0, trajectory: 1, reward: 0 + 0.35 },
  ])
  expect(kl.members[0]!.advantage).toBeCloseTo(wanted[0]!, 9)
  const alone = { distillation: { mode: 'alone', coefficient: 1 } } as const
  const { members } = weighed(groupOf(gap, [1, 0]), alone)
  expect(members[0]!.stretches!.map(each => Math.abs(each.advantage))).toEqual([0.5, 0, 0.75])
})

describe('names of shaping', () => {
  const has = { reference: false, teacher: false }

  it('say what they need and what was possible', () => {
    expect(() => readShaping({ distill: 'alone', has })).toThrow('--teacher POLICY')
    expect(() => readShaping({ klPenalty: 1, klIn: 'reward', has })).toThrow('--reference POLICY')
    expect(() => readShaping({ overlong: 'soft:maximum=4', has })).toThrow('a buffer within it')
    expect(() => readShaping({ overlong: 'hard', has })).toThrow('soft')
    const read = readShaping({ distill: 'added:coefficient=0.5', has: { ...has, teacher: true } })
    expect(read.distillation).toEqual({ mode: 'added', coefficient: 0.5 })
  })
})

describe('void turns', () => {
  /** A chain whose turns said this. */
  function chain(name: string, said: readonly string[]): Tree {
    const tree = emptyTree(name)
    let place = tree.append(root, given('prompt', Int32Array.of(1)))
    const turns = said.map((_, messages) => {
      place = tree.append(place, segment({ own: [-1] }))
      return { from: place.node, end: place, finish: { kind: 'stop' } as const, messages }
    })
    const messages = said.map(content => ({ role: 'assistant' as const, content }))
    tree.end(endAt(tree, place, { turns, messages }))
    return tree
  }
  const trees = [chain('g/0', ['\\boxed{1}', ' ', '\\boxed{2}']), chain('g/1', ['\\boxed{3}'])]
  const members = trees.map((tree, index) => groupOf(tree, [index === 0 ? 1 : 0]).members[0]!)
  const group = { ...groupOf(trees[0]!, []), members }
  const advantages = (voidTurns: string): readonly number[][] => {
    const shaped = weighed(
      group,
      readShaping({ voidTurns, has: { reference: false, teacher: false } }),
    )
    return trees.map(tree =>
      rowsOf(tree, { credits: creditsOf(shaped, tree) }).flatMap(row => [
        ...row.advantages.slice(1),
      ]),
    )
  }

  it('with `mask` teach nothing, and the other turns of their attempts do', () => {
    const [first, second] = advantages('mask')
    expect(first![0]).toBeGreaterThan(0)
    expect(first![1]).toBe(0)
    expect(first![2]).toBe(first![0])
    expect(second).toEqual([-first![0]!])
  })

  it('with `penalty` take something off the reward that is compared', () => {
    const [first] = advantages('penalty:size=2')
    expect(first!.every(value => value < 0)).toBe(true)
  })

  it('of a definition that nobody knows are refused', () => {
    expect(() => advantages('mask:definition=odd')).toThrow('simpletir')
    expect(() => advantages('mask:size=1')).toThrow('no option "size"')
  })
})
