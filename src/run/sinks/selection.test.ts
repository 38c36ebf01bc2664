import { describe, expect, it } from 'vitest'
import { chainGroup } from '../../../test/export-runs.ts'
import { makeSelection } from './selection.ts'
import { readWhere, WhereError } from './where.ts'

const fields = {
  fields: { reward: (x: { r: number | null }) => x.r, kind: () => 'chain' },
  families: { rewards: (_: unknown, name: string) => (name === 'exact' ? 1 : null) },
}
const holds = (text: string, r: number | null): boolean => readWhere(text, fields)({ r })

describe('where', () => {
  it('compares fields with numbers and texts', () => {
    expect(holds('reward >= 1', 1)).toBe(true)
    expect(holds('reward >= 1', 0.5)).toBe(false)
    expect(holds('reward > -2 and reward < 0', -1)).toBe(true)
    expect(holds("kind == 'chain' and not (reward = 1 or reward == 2)", 3)).toBe(true)
    expect(holds('rewards.exact == 1 && kind != "tree"', 0)).toBe(true)
    expect(holds('rewards.other == null', 0)).toBe(true)
    expect(holds('reward >= 1e-3 || reward < 0', 0.01)).toBe(true)
  })

  it('gives nothing an order that has none', () => {
    expect(holds('reward >= 0', null)).toBe(false)
    expect(holds('reward < 0', null)).toBe(false)
    expect(holds("reward != 'x'", 0)).toBe(true)
    expect(holds('kind > 3', 0)).toBe(false)
  })

  it('binds and closer than or', () => {
    expect(holds('reward == 5 or reward == 1 and kind == "tree"', 5)).toBe(true)
    expect(holds('(reward == 5 or reward == 1) and kind == "tree"', 5)).toBe(false)
  })

  it.each([
    ['rewrad > 1', /no field "rewrad". Known: reward, kind, rewards.NAME/],
    ['reward >', /expected a field, a number or a text at character 9, found the end/],
    ['reward > 1 1', /expected and, or, a comparison or the end at character 12/],
    ['(reward > 1', /expected a closing bracket/],
    ['reward ; 1', /cannot be read from character 7 on/],
    ['constructor == 1', /no field "constructor"/],
    ['x'.repeat(3000), /more than 2000/],
  ])('refuses %s', (text, reason) => {
    expect(() => readWhere(text, fields)).toThrow(WhereError)
    expect(() => readWhere(text, fields)).toThrow(reason)
  })
})

describe('selection', () => {
  const group = chainGroup([1, 0, 0.5, 1], { dropped: [2], failed: 1 })

  it('leaves out and counts what is not trained on', () => {
    const { group: kept, leftOut } = makeSelection({})(group)
    expect(kept.members.map(member => member.reward.total)).toEqual([1, 0, 1])
    expect(leftOut).toEqual({ failed: 1, filtered: 1 })
  })

  it('writes it where asked to', () => {
    const { group: kept, leftOut } = makeSelection({ include: ['failed', 'filtered'] })(group)
    expect([kept.members.length, kept.unscored.length]).toEqual([4, 1])
    expect(leftOut).toEqual({})
  })

  it('keeps the best of each group, the first of equals', () => {
    const { group: kept, leftOut } = makeSelection({ best: 1 })(group)
    expect(kept.members.map(member => member.tree.member)).toEqual([0])
    expect(leftOut.best).toBe(2)
  })

  it('applies a condition to trajectories', () => {
    const { group: kept, leftOut } = makeSelection({ where: 'reward < 1' })(group)
    expect(kept.members.map(member => member.reward.total)).toEqual([0])
    expect(leftOut.where).toBe(2)
  })

  it('keeps who was dropped from the loss only where a trainer compares rewards itself', () => {
    const group = chainGroup([1, 0, 0.5], { dropped: [2] })
    const rewards = (comparesRewards: boolean) =>
      makeSelection({}, { comparesRewards })(group).group.members.map(({ reward }) => reward.total)
    expect(rewards(true)).toEqual([1, 0, 0.5])
    expect(rewards(false)).toEqual([1, 0])
    const members = group.members.map(member => ({
      ...member,
      dropped: member.dropped && { ...member.dropped, from: 'loss-and-statistics' as const },
    }))
    const { group: left } = makeSelection({}, { comparesRewards: true })({ ...group, members })
    expect(left.members).toHaveLength(2)
  })
})
