import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import type { RewardedTrajectory } from '../advantage.ts'
import { advantageNamed } from '../registry.ts'

/** Rewards of one group, in order. */
function group(rewards: readonly (number | undefined)[], name = 'g'): RewardedTrajectory[] {
  return rewards.map((reward, trajectory) => ({ group: name, trajectory, reward, length: 1 }))
}

function compute(name: string, entries: readonly RewardedTrajectory[], options: object = {}) {
  const estimator = advantageNamed(name)
  if (estimator.kind !== 'trajectory') throw new Error(`${name} is not about trajectories`)
  return estimator.compute(entries, { ...options })
}

function expectClose(
  ours: readonly (number | undefined)[],
  theirs: readonly (number | undefined)[],
  digits = 6,
) {
  expect(ours).toEqual(
    theirs.map(value => (value === undefined ? undefined : expect.closeTo(value, digits))),
  )
}

const perTrajectory = ['grpo', 'dr-grpo', 'rloo', 'opo', 'gpg', 'pass-at-k'] as const

describe('worked examples', () => {
  const half = 0.8660239
  it.each([
    ['grpo', [1, 0, 0, 1], [half, -half, -half, half]],
    ['grpo', [1, 0, 0, 0], [1.499997, -0.499999, -0.499999, -0.499999]],
    ['grpo', [3, 3, 3], [0, 0, 0]],
    ['dr-grpo', [1, 0, 0, 1], [0.5, -0.5, -0.5, 0.5]],
    ['rloo', [1, 0, 0, 1], [2 / 3, -2 / 3, -2 / 3, 2 / 3]],
    ['rloo', [1, 2, 3, 6], [-8 / 3, -4 / 3, 0, 4]],
    ['gpg', [1, 0, 0, 1], [1, -1, -1, 1]],
    ['pass-at-k', [1, 0, 0, 1], [0, 0, 0, 0]],
    ['pass-at-k', [0, 1, 0.5], [0, 0.999998, 0]],
  ] as const)('%s of %o', (name, rewards, expected) => {
    expectClose(compute(name, group(rewards)), expected)
  })

  it('Twinkle: rewards 0, 2, 0, 2 with its epsilon; RLOO scaled by the group', () => {
    const twinkle = { epsilon: 1e-8, scale: 'group' }
    expectClose(
      compute('grpo', group([0, 2, 0, 2]), twinkle),
      [-half, half, -half, half].map(a => a * (0.8660254 / half)),
    )
    expectClose(compute('rloo', group([1, 2, 3, 6]), twinkle), [-1.23443, -0.61721, 0, 1.85164], 5)
  })

  it('OPO: an ending without a token weighs nothing; a group of them compares nothing', () => {
    const lengths = (...all: readonly number[]) =>
      all.map((length, trajectory) => ({ group: 0, trajectory, reward: trajectory % 2, length }))
    expectClose(compute('opo', lengths(10, 10, 0)), [-0.5, 0.5, -0.5])
    expectClose(compute('opo', lengths(0, 0)), [0, 0])
  })

  it('OPO with lengths 10, 20, 30, 60', () => {
    const lengths = [10, 20, 30, 60]
    const entries = group([1, 0, 0, 1]).map((entry, index) => ({
      ...entry,
      length: lengths[index]!,
    }))
    expectClose(compute('opo', entries), [0.4166667, -0.5833333, -0.5833333, 0.4166667])
  })

  it('Tree-GRPO: two trees with leaves 1, 0, 1 and 0, 0, 1', () => {
    const entries = group([1, 0, 1, 0, 0, 1]).map((entry, leaf) => ({
      ...entry,
      tree: leaf < 3 ? 'a' : 'b',
    }))
    const expected = [1.490219, -2.067568, 1.490219, -1.490219, -1.490219, 2.067568]
    expectClose(compute('tree-grpo', entries), expected, 5)
    const inner = [0.577349, -1.154699, 0.577349, -0.577349, -0.577349, 1.154699]
    expectClose(compute('tree-grpo', entries, { inter: 0 }), inner, 5)
    const outer = compute('tree-grpo', entries, { intra: 0 })
    expectClose(outer, compute('grpo', entries))
  })

  it('population deviation and the batch as scale', () => {
    expectClose(
      compute('grpo', group([1, 0, 0, 1]), { deviation: 'population', epsilon: 0 }),
      [1, -1, -1, 1],
    )
    const two = [...group([0, 2], 'a'), ...group([10, 10], 'b')]
    const spread = Math.sqrt((5.5 ** 2 + 3.5 ** 2 + 4.5 ** 2 * 2) / 3)
    expectClose(compute('grpo', two, { scale: 'batch', epsilon: 0 }), [
      -1 / spread,
      1 / spread,
      0,
      0,
    ])
  })
})

describe('keys, not positions', () => {
  const entry = fc.record({
    group: fc.constantFrom('a', 'b', 'c'),
    reward: fc.option(fc.constantFrom(0, 0.25, 1, -1), { nil: undefined }),
    weight: fc.constantFrom(0.25, 0.5, 1),
    length: fc.integer({ min: 1, max: 9 }),
    tree: fc.constantFrom(0, 1),
  })
  const entries = fc
    .array(entry, { minLength: 1, maxLength: 20 })
    .map(list => list.map((item, trajectory) => ({ ...item, trajectory })))

  it.each([...perTrajectory, 'tree-grpo'])('%s: the order of the list does not matter', name => {
    fc.assert(
      fc.property(entries, fc.integer(), (list, turn) => {
        const by = ((turn % list.length) + list.length) % list.length
        const turned = [...list.slice(by), ...list.slice(0, by)]
        const before = new Map(
          compute(name, list).map((value, index) => [list[index]!.trajectory, value]),
        )
        compute(name, turned).forEach((value, index) => {
          const expected = before.get(turned[index]!.trajectory)
          // A tie for the best has advantage 0 whoever is listed first.
          if (expected === undefined) expect(value).toBeUndefined()
          else expect(value).toBeCloseTo(expected, 9)
        })
      }),
      { seed: 7, numRuns: 60 },
    )
  })

  it.each([...perTrajectory, 'tree-grpo'])(
    '%s: a trajectory counts once however many rows it became',
    name => {
      fc.assert(
        fc.property(
          entries,
          fc.array(fc.boolean(), { minLength: 20, maxLength: 20 }),
          (list, cut) => {
            const rows = list.flatMap((item, index) =>
              cut[index]
                ? [
                    { ...item, length: 1 },
                    { ...item, length: item.length },
                  ]
                : [{ ...item, length: item.length + 1 }],
            )
            const longer = list.map(item => ({ ...item, length: item.length + 1 }))
            const expected = compute(name, longer)
            compute(name, rows).forEach((value, index) => {
              const place = list.findIndex(item => item.trajectory === rows[index]!.trajectory)
              expect(value).toBe(expected[place])
            })
          },
        ),
        { seed: 8, numRuns: 60 },
      )
    },
  )

  it('1 and "1" are different names, and so are groups called __proto__', () => {
    const named = (name: string | number, rewards: readonly number[]) =>
      rewards.map((reward, trajectory) => ({ group: name, trajectory, reward }))
    const mixed = [...named(1, [0, 1]), ...named('1', [5, 6]), ...named('__proto__', [8, 9])]
    expectClose(compute('dr-grpo', mixed), [-0.5, 0.5, -0.5, 0.5, -0.5, 0.5])
  })
})

describe('what is missing', () => {
  it.each(perTrajectory)('%s: never scored is not 0', name => {
    const [first, missing, last] = compute(name, group([1, undefined, 0]))
    expect(missing).toBeUndefined()
    expect([first, last]).toEqual(compute(name, group([1, 0])))
    expect(compute(name, group([1, 0, 0]))).not.toEqual([first, missing, last])
  })

  it.each(perTrajectory)('%s: equal rewards give exactly 0', name => {
    const rewards = [0.1, 0.1, 0.1]
    expect(compute(name, group(rewards)).map(value => Math.abs(value!))).toEqual([0, 0, 0])
  })

  it.each(['grpo', 'dr-grpo', 'rloo'])('%s: without an epsilon, too', name => {
    const options = name === 'dr-grpo' ? {} : { epsilon: 0, scale: 'group' }
    expect(compute(name, group([2, 2]), options)).toEqual([0, 0])
  })

  it.each(perTrajectory)('%s: a group of one has nothing to be compared with', name => {
    expect(compute(name, group([0.7]))).toEqual([0])
  })

  it.each(['grpo', 'dr-grpo', 'rloo', 'opo', 'gpg'])('%s: or its bare reward, when asked', name => {
    expectClose(compute(name, group([0.7]), { single: 'raw' }), [0.7], 5)
  })

  it.each(perTrajectory)('%s: NaN and infinity are refused by name', name => {
    expect(() => compute(name, group([1, Number.NaN]))).toThrow(
      'Trajectory 1 of group g has reward NaN; leave it undefined if it was never scored.',
    )
    expect(() => compute(name, group([Number.POSITIVE_INFINITY]))).toThrow('has reward Infinity')
  })

  it('rows that disagree about their trajectory are refused', () => {
    const rows = [...group([1]), ...group([0])]
    expect(() => compute('grpo', rows)).toThrow(
      'is listed with reward 1, weight 1, tree undefined, and again with 0',
    )
  })

  it('what an estimator needs is asked for', () => {
    const bare = [1, 0].map((reward, trajectory) => ({ group: 'g', trajectory, reward }))
    expect(() => compute('opo', bare)).toThrow(
      "OPO needs trajectory 0's trained tokens, got undefined",
    )
    expect(() => compute('tree-grpo', bare)).toThrow('Tree-GRPO needs the tree of trajectory 0')
  })

  it.each([...perTrajectory, 'tree-grpo'])('%s: unknown options are refused', name => {
    expect(() => compute(name, group([1, 0]), { eps: 1 })).toThrow(
      `The ${name} advantage has no option "eps"`,
    )
  })

  it('an unknown word is answered with the known ones', () => {
    expect(() => compute('grpo', group([1, 0]), { scale: 'grup' })).toThrow(
      'scale cannot be "grup". Known: group, batch, none.',
    )
    expect(() => compute('rloo', group([1, 0]), { single: 'one' })).toThrow('Known: zero, raw.')
  })
})

describe('leaf weights', () => {
  it('the baseline uses them: a leaf of weight 2 counts as two leaves', () => {
    const [wide, narrow] = [
      [...group([1, 0])].map((entry, index) => ({ ...entry, weight: index + 1 })),
      group([1, 0, 0]),
    ]
    for (const name of ['dr-grpo', 'gpg', 'opo']) {
      const [first, second] = compute(name, wide!)
      expectClose([first, second, second], compute(name, narrow!))
    }
  })

  it('their size does not matter', () => {
    for (const name of perTrajectory) {
      const light = group([1, 0, 0.5, 1]).map(entry => ({ ...entry, weight: 0.125 }))
      expectClose(compute(name, light), compute(name, group([1, 0, 0.5, 1])), 12)
    }
  })

  it('weighted advantages are centred: their weighted sum is 0', () => {
    const weights = [0.5, 0.25, 0.25, 1]
    const entries = group([1, 0.5, 0, 0.2]).map((entry, index) => ({
      ...entry,
      weight: weights[index]!,
    }))
    const total = compute('grpo', entries).reduce<number>(
      (sum, value, index) => sum + value! * weights[index]!,
      0,
    )
    expect(total).toBeCloseTo(0, 12)
  })

  it('a weight of 0 or NaN is refused', () => {
    const entries = group([1, 0]).map(entry => ({ ...entry, weight: 0 }))
    expect(() => compute('grpo', entries)).toThrow('has weight 0')
  })
})
