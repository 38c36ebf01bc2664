import { describe, expect, it } from 'vitest'
import { advantageNamed } from '../registry.ts'
import { gigpoAdvantages, sharedAnchorShare } from './gigpo.ts'
import { treeRlAdvantages } from './tree-rl.ts'
import {
  discountedReturns,
  type RewardedTurn,
  shareReward,
  turnLevelAdvantages,
} from './turn-level.ts'

function turns(
  trajectory: string,
  anchors: readonly (string | undefined)[],
  rewards: readonly (number | undefined)[],
): RewardedTurn[] {
  return rewards.map((reward, index) => ({
    group: 'g',
    trajectory,
    reward,
    anchor: anchors[index],
  }))
}

function expectClose(
  ours: readonly (number | undefined)[],
  theirs: readonly (number | undefined)[],
  digits = 5,
) {
  expect(ours).toEqual(
    theirs.map(value => (value === undefined ? undefined : expect.closeTo(value, digits))),
  )
}

describe('GiGPO', () => {
  // Appendix A of the AgentFly specification.
  const both = [
    ...turns('A', ['s0', 's1', 's2'], [0, 0, 1]),
    ...turns('B', ['s0', 's1', 's1', 's3'], [0, 0, 0, 0]),
  ]

  it('unscaled, each trajectory counted once', () => {
    const expected = [0.95125, 1.133333, 0.5, -0.95125, -0.816667, -0.816667, -0.5]
    expectClose(gigpoAdvantages(both, { scale: 'none' }), expected)
  })

  it('scaled by the spread', () => {
    const expected = [1.414212, 1.861804, 0.7071058, -1.414212, -1.284455, -1.284455, -0.7071058]
    expectClose(gigpoAdvantages(both), expected)
  })

  it('with statistics over turns, as older code has them', () => {
    const options = { statistics: 'turns', omega: 0 } as const
    const a = (advantage: number, other: number) => [
      advantage,
      advantage,
      advantage,
      other,
      other,
      other,
      other,
    ]
    expectClose(gigpoAdvantages(both, { ...options, scale: 'none' }), a(0.571429, -0.428571))
    expectClose(gigpoAdvantages(both, options), a(1.069043, -0.801782))
  })

  it('does not depend on the order of trajectories, only on that of their turns', () => {
    const interleaved = [both[3]!, both[0]!, both[4]!, both[1]!, both[5]!, both[2]!, both[6]!]
    const expected = gigpoAdvantages(both)
    const places = [3, 0, 4, 1, 5, 2, 6]
    expectClose(
      gigpoAdvantages(interleaved),
      places.map(place => expected[place]),
      12,
    )
  })

  it('without anchors it is GRPO, and says how many turns share one', () => {
    const bare = both.map(({ anchor: _, ...turn }) => turn)
    expectClose(gigpoAdvantages(bare), gigpoAdvantages(both, { omega: 0 }), 12)
    expect(sharedAnchorShare(both)).toBeCloseTo(5 / 7, 12)
    expect(sharedAnchorShare(bare)).toBe(0)
  })

  it('a trajectory that was never scored takes no part', () => {
    const third = turns('C', ['s0', 's1'], [0, undefined])
    expect(gigpoAdvantages([...both, ...third])).toEqual([
      ...gigpoAdvantages(both),
      undefined,
      undefined,
    ])
  })

  it('a group of one', () => {
    expectClose(gigpoAdvantages(turns('A', ['s0', 's1'], [0, 1])), [0, 0])
    expectClose(gigpoAdvantages(turns('A', ['s0', 's1'], [0, 1]), { single: 'raw' }), [1, 1])
  })

  it('anchors are compared within their group only', () => {
    const elsewhere = both.map(turn => ({ ...turn, group: 'h' }))
    expect(gigpoAdvantages([...both, ...elsewhere]).slice(0, 7)).toEqual(gigpoAdvantages(both))
  })

  it('refuses rewards and weights that are none', () => {
    expect(() => gigpoAdvantages(turns('A', ['s0'], [Number.NaN]))).toThrow(
      'a turn with reward NaN',
    )
    const uneven = turns('A', ['s0', 's1'], [0, 1]).map((turn, index) => ({
      ...turn,
      weight: index + 1,
    }))
    expect(() => gigpoAdvantages(uneven)).toThrow('turns of weight 1 and 2')
  })
})

describe('turn-level returns', () => {
  it('are summed backwards with a discount', () => {
    expectClose(discountedReturns([0, 0, 1], 0.95), [0.9025, 0.95, 1], 12)
    expect(discountedReturns([], 0.5)).toEqual([])
    expect(() => discountedReturns([1], 1.5)).toThrow('got 1.5')
  })

  it('one reward can be shared out over three turns', () => {
    const shared = (sharing: 'last' | 'every' | 'uniform' | 'geometric') =>
      shareReward(1, 3, { sharing })
    expectClose(shared('last'), [0, 0, 1])
    expectClose(shared('every'), [1, 1, 1])
    expectClose(shared('uniform'), [1 / 3, 1 / 3, 1 / 3])
    expectClose(shared('geometric'), [0.298893, 0.332103, 0.369004])
  })

  it('advantages compare turns of the same number', () => {
    const both = [...turns('A', [], [0, 1]), ...turns('B', [], [1, 0, 0])]
    expectClose(turnLevelAdvantages(both, { scale: 'none' }), [0, 0.5, 0, -0.5, 0])
    const mean = 3 / 5
    expectClose(
      turnLevelAdvantages(both, { scale: 'none', across: 'group' }),
      [1, 1, 1, 0, 0].map(value => value - mean),
    )
  })

  it('with one turn per trajectory they are GRPO', () => {
    const rewards = [1, 0, 0.5, 1]
    const single = rewards.map((reward, trajectory) => ({ group: 'g', trajectory, reward }))
    const grpo = advantageNamed('grpo')
    if (grpo.kind !== 'trajectory') throw new Error('grpo is about trajectories')
    expectClose(turnLevelAdvantages(single), grpo.compute(single), 12)
  })
})

describe('TreeRL', () => {
  // Appendix A: child a has leaves 1, 0, 1 and child b is the leaf 0.
  const tree = [
    { parent: undefined },
    { parent: 0 },
    { parent: 0, reward: 0 },
    { parent: 1, reward: 1 },
    { parent: 1, reward: 0 },
    { parent: 1, reward: 1 },
  ]

  it('agrees with the worked example', () => {
    expectClose(treeRlAdvantages(tree), [0, 0.19245, -1, 0.833333, -1.166667, 0.833333])
  })

  it('leaves out what was never scored', () => {
    const more = [...tree, { parent: 2 }, { parent: 0 }]
    // Node 2 is no leaf any more, and neither it nor its child nor node 7 knows a reward.
    const unscored = more.map((node, index) => (index === 2 ? { parent: 0 } : node))
    const [, a, b, ...rest] = treeRlAdvantages(unscored)
    expect([b, rest[3], rest[4]]).toEqual([undefined, undefined, undefined])
    expect(a).toBeCloseTo(0, 12)
  })

  it('weighs leaves', () => {
    const weighted = tree.map((node, index) => (index === 2 ? { ...node, weight: 3 } : node))
    const root = 2 / 6
    const a = 2 / 3
    expectClose([treeRlAdvantages(weighted)[1]], [(2 * (a - root)) / Math.sqrt(3)])
  })

  it('refuses what is no tree', () => {
    expect(() => treeRlAdvantages([{ parent: 0, reward: 1 }])).toThrow('Node 0 has parent 0')
    expect(() =>
      treeRlAdvantages([
        { parent: undefined, reward: 1 },
        { parent: 0, reward: 1 },
      ]),
    ).toThrow('Node 0 has children and the reward 1')
    expect(() => treeRlAdvantages([{ parent: undefined, reward: Number.NaN }])).toThrow(
      'reward NaN',
    )
  })
})
