import { describe, expect, it } from 'vitest'
import { emptyTree, endAt, randomTree } from '../../../test/random-tree.ts'
import { coverageOf } from '../../base/core/credit.ts'
import type { Group, Judged } from '../../base/core/group.ts'
import type { GroupId, TaskId } from '../../base/core/ids.ts'
import { rowsOf } from '../../base/core/row.ts'
import { given, sampled } from '../../base/core/segment.ts'
import { type Gradable, isGradable, type Turn } from '../../base/core/trajectory.ts'
import { type GrowingTree, type Place, pathTo, root, type Tree } from '../../base/core/tree.ts'
import { leafWeightNames } from '../../base/math/credit.ts'
import { random, seedOf } from '../../base/math/random.ts'
import { creditsOf } from '../../run/rows/row-record.ts'
import { makeEstimate } from './estimate.ts'
import { weigh } from './gather.ts'

const version = { from: 0, to: 0 }
const sample = (length: number) => {
  const ids = new Int32Array(length).fill(7)
  return sampled({ ids, logprobs: new Float32Array(length).fill(-1), version })
}

function member(tree: Tree, index: number, total: number): Judged {
  const trajectory = tree.trajectories[index] as Gradable
  return { tree, trajectory, reward: { total, parts: [] }, dropped: null }
}

function groupOf(members: readonly Judged[]): Group<Judged> {
  return { id: 'g' as GroupId, task: 'task' as TaskId, members, unscored: [] }
}

/** A chain whose turns stood at these anchors and earned these rewards. */
function chain(name: string, steps: readonly (readonly [string, number])[]): Tree {
  const tree = emptyTree(name)
  let place = tree.append(root, given('prompt', Int32Array.of(1)))
  const turns = steps.map(([anchor, reward]): Turn => {
    place = tree.append(place, sample(2))
    const turn = { from: place.node, end: place, finish: { kind: 'stop' } as const, messages: 0 }
    return { ...turn, anchor, reward }
  })
  tree.end(endAt(tree, place, { turns }))
  return tree
}

describe('turn by turn', () => {
  const one = chain('g/0', [
    ['s0', 0],
    ['s1', 0],
    ['s2', 1],
  ])
  const two = chain('g/1', [
    ['s0', 0],
    ['s1', 0],
    ['s1', 0],
    ['s3', 0],
  ])
  const members = [member(one, 0, 1), member(two, 0, 0)]

  it('gigpo adds what the turns at one anchor say to what the group says', () => {
    const group = weigh(groupOf(members), {
      estimate: makeEstimate('gigpo:scale=none'),
      weighting: 'uniform',
    })
    const rounded = group.members.map(({ turns }) => turns!.map(value => Number(value.toFixed(6))))
    expect(rounded).toEqual([
      [0.95125, 1.133333, 0.5],
      [-0.95125, -0.816667, -0.816667, -0.5],
    ])
    expect(group.members[0]!.advantage).toBeCloseTo((0.95125 + 1.133333 + 0.5) / 3, 5)
  })

  it('a reward that no step told of is earned at the last turn', () => {
    const silent = chain('g/2', [
      ['s0', 0],
      ['s1', 0],
    ])
    const group = groupOf([member(silent, 0, 3), member(two, 0, 0)])
    const { members } = weigh(group, {
      estimate: makeEstimate('turn-level:scale=none'),
      weighting: 'uniform',
    })
    // Both its turns have the return 3, compared with 0 of the other.
    expect(members[0]!.turns).toEqual([1.5, 1.5])
  })

  it.each(['turn-level', 'gigpo'])(
    '%s: a member of empty turns has a number for what it did',
    name => {
      const empty = emptyTree('g/2')
      const from = empty.append(root, given('prompt', Int32Array.of(1)))
      const end = empty.append(from, sample(0))
      const turn = { from: end.node, end, finish: { kind: 'stop' } as const, messages: 0 }
      empty.end(endAt(empty, end, { turns: [turn] }))
      const options = { estimate: makeEstimate(name), weighting: 'uniform' as const }
      const { members: weighed } = weigh(groupOf([members[0]!, member(empty, 0, 0)]), options)
      expect(weighed[1]!.advantage).toBeLessThan(0)
    },
  )

  it('a member that left the statistics has no advantage and moves nobody', () => {
    const away = { filter: 'f', reason: 'r', from: 'loss-and-statistics' as const }
    const third = chain('g/3', [['s0', 9]])
    const group = groupOf([...members, { ...member(third, 0, 9), dropped: away }])
    const options = { estimate: makeEstimate('gigpo'), weighting: 'uniform' as const }
    const three = weigh(group, options).members
    expect(three[2]!.advantage).toBeNull()
    expect(three.slice(0, 2)).toEqual(weigh(groupOf(members), options).members)
  })
})

/** A tree of two branches: three endings under one, one under the other. */
function bush(): GrowingTree {
  const tree = emptyTree()
  const opening = tree.append(root, given('prompt', Int32Array.of(1)))
  const a = tree.append(opening, sample(3))
  const seen = tree.append(a, given('observed', Int32Array.of(2)))
  for (let leaf = 0; leaf < 3; leaf++) tree.end(endAt(tree, tree.append(seen, sample(2))))
  tree.end(endAt(tree, tree.append(opening, sample(4))))
  return tree
}

describe('node by node', () => {
  const options = { estimate: makeEstimate('tree-rl'), weighting: 'uniform' as const }

  it('tree-rl gives each stretch between branchings its own advantage', () => {
    const tree = bush()
    const rewards = [1, 0, 1, 0]
    const group = weigh(groupOf(rewards.map((total, index) => member(tree, index, total))), options)
    const [first, second, , fourth] = group.members.map(({ stretches }) =>
      stretches!.map(({ advantage }) => Number(advantage.toFixed(6))),
    )
    expect(first).toEqual([0.19245, 0.833333])
    expect(second).toEqual([0.19245, -1.166667])
    expect(fourth).toEqual([-1])
    const row = rowsOf(tree, { credits: creditsOf(group, tree) })[0]!
    expect([...row.advantages].map(value => Number(value.toFixed(6)))).toEqual([
      0, 0.19245, 0.19245, 0.19245, 0, 0.833333, 0.833333,
    ])
  })

  it('a fork inside a turn parts its tokens', () => {
    const tree = emptyTree()
    const end = tree.append(tree.append(root, given('prompt', Int32Array.of(1))), sample(5))
    tree.end(endAt(tree, end))
    tree.end(endAt(tree, tree.append({ node: end.node, offset: 2 }, sample(1))))
    const group = weigh(groupOf([member(tree, 0, 1), member(tree, 1, 0)]), options)
    const [row, other] = rowsOf(tree, { credits: creditsOf(group, tree) })
    expect([...row!.advantages]).toEqual([0, 0, 0, 1, 1, 1])
    expect([...other!.advantages]).toEqual([0, 0, 0, -1])
  })

  it('turns that nothing parts are one stretch', () => {
    const tree = chain('g/0', [
      ['a', 0],
      ['b', 0],
    ])
    const other = chain('g/1', [['a', 0]])
    const group = weigh(groupOf([member(tree, 0, 1), member(other, 0, 0)]), options)
    expect(group.members[0]!.stretches!.map(({ advantage }) => advantage)).toEqual([1, 1])
  })
})

const estimates = ['grpo', 'tree-grpo', 'gigpo', 'turn-level', 'tree-rl']
const seeds = 60 * Number(process.env.ESPALIER_SOAK ?? 1)

describe.each(estimates)('[T5] rows weighed by %s', name => {
  it('train each token once, with the mean over the trajectories through it', () => {
    for (let seed = 0; seed < seeds; seed++) {
      const weighting = leafWeightNames[seed % 2]!
      const tree = randomTree(seed)
      const draw = random(seedOf('rewards', seed))
      const members = tree.trajectories.flatMap((trajectory, index) =>
        isGradable(trajectory) ? [member(tree, index, Math.floor(draw() * 3))] : [],
      )
      const group = weigh(groupOf(members), { estimate: makeEstimate(name), weighting })
      const expected = sums(tree, group)
      const actual = new Map<string, number>()
      for (const row of rowsOf(tree, { credits: creditsOf(group, tree), weighting })) {
        for (const [key, token] of tokensOf(tree, row.trajectory.end, row.ids)) {
          if (row.mask[token] !== 1) continue
          expect(actual.has(key)).toBe(false)
          actual.set(key, row.advantages[token]! * row.weights[token]!)
        }
      }
      expect([...actual.keys()].sort()).toEqual([...expected.keys()].sort())
      for (const [key, sum] of expected) expect(actual.get(key)).toBeCloseTo(sum, 9)
    }
  })
})

function tokensOf(tree: Tree, end: Place, ids: Int32Array): readonly (readonly [string, number])[] {
  // Rows of a rewritten trajectory end elsewhere; the one with these tokens is meant.
  const ends = [
    end,
    ...tree.nodes.map((node, index) => ({ node: index, offset: node.segment.ids.length })),
  ]
  const isHere = (place: Place): boolean => {
    const spans = pathTo(tree, place)
    const length = spans.reduce((sum, span) => sum + span.length, 0)
    return (
      length === ids.length &&
      spans.every(({ node, start, length }) =>
        tree.nodes[node]!.segment.ids.subarray(0, length).every((id, at) => ids[start + at] === id),
      )
    )
  }
  return pathTo(tree, ends.find(isHere)!).flatMap(({ node, start, length }) =>
    Array.from({ length }, (_, offset) => [`${node}:${offset}`, start + offset] as const),
  )
}

/** Weight times advantage of every trajectory through each token, added up. */
function sums(tree: Tree, group: Group): ReadonlyMap<string, number> {
  const total = new Map<string, number>()
  for (const { trajectory, advantage, weight, turns, stretches } of group.members) {
    if (advantage === null) continue
    for (const [node, length] of coverageOf(tree, trajectory)) {
      if (tree.nodes[node]!.segment.origin !== 'sampled') continue
      const turn = trajectory.turns.findIndex(each => isWithin(tree, node, each))
      for (let offset = 0; offset < length; offset++) {
        const stretch = stretches?.find(
          each => each.node === node && each.start <= offset && offset < each.end,
        )
        const own = stretch?.advantage ?? turns?.[turn] ?? advantage
        const key = `${node}:${offset}`
        total.set(key, (total.get(key) ?? 0) + weight * own)
      }
    }
  }
  return total
}

function isWithin(tree: Tree, node: number, { from, end }: Turn): boolean {
  for (let at = end.node; ; at = tree.nodes[at]!.parent.node) {
    if (at === node) return true
    if (at === from || at === 0) return false
  }
}

describe('names', () => {
  it('whole-batch estimators are refused in words, and so are options nobody knows', () => {
    expect(() => makeEstimate('reinforce++')).toThrow('whitened over the tokens of a whole')
    expect(() => makeEstimate('tree-rl:depth=2')).toThrow('has no option "depth"')
    expect(() => makeEstimate('grpp')).toThrow('Known')
    expect(() => makeEstimate('gigpo:gama=1')).toThrow('gama')
    expect(() => makeEstimate('grpo:scal=none')).toThrow('scal')
  })

  it.each([
    'gigpo:gamma=x',
    'turn-level:gamma=2',
    'turn-level:scale=batch',
    'tree-grpo:inter=much',
    'tree-grpo:intra=',
    'rloo:epsilon=x',
  ])('%s is refused before anything is rolled', text => {
    const [, option] = /:(\w+)=/.exec(text)!
    expect(() => makeEstimate(text)).toThrow(option)
  })
})
