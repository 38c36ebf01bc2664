import { describe, expect, it } from 'vitest'
import type { GroupRow } from './answers.ts'
import { facetsOf, plainQuery, queryGroups, readQuery, writeQuery } from './query.ts'

function row(id: string, parts: Partial<GroupRow> = {}): GroupRow {
  return {
    id,
    task: id,
    step: null,
    order: 0,
    opening: '',
    rewards: [0, 1],
    members: 2,
    unscored: 0,
    dropped: 0,
    isEvaluation: false,
    mean: 0.5,
    spread: 1,
    outcomes: ['completed'],
    reasons: [],
    tools: [],
    tokens: 10,
    turns: 1,
    ...parts,
  }
}

const ids = (rows: readonly GroupRow[]): string => rows.map(({ id }) => id).join(' ')

describe('the table of groups', () => {
  const rows = [
    row('a', { order: 2, mean: 0.1, tools: ['find'] }),
    row('b', { order: 0, mean: null, spread: null, rewards: [], outcomes: ['failed in tool'] }),
    row('c', { order: 1, mean: 0.9, spread: 0, rewards: [0.9, 0.9], reasons: ['equal: all 0.9'] }),
    row('d', { order: 3, step: 4, mean: 0.5, isEvaluation: true }),
  ]

  it('is sorted either way, and what is not known comes last', () => {
    expect(ids(queryGroups(rows, plainQuery))).toBe('b c a d')
    expect(ids(queryGroups(rows, { sort: 'mean', isDescending: false }))).toBe('a d c b')
    expect(ids(queryGroups(rows, { sort: 'mean', isDescending: true }))).toBe('c d a b')
  })

  it('is narrowed by everything it shows', () => {
    const ask = (parts: object): string => ids(queryGroups(rows, { ...plainQuery, ...parts }))
    expect(ask({ tool: 'find' })).toBe('a')
    expect(ask({ outcome: 'failed in tool' })).toBe('b')
    expect(ask({ reason: 'equal: all 0.9' })).toBe('c')
    expect(ask({ contrast: 'none' })).toBe('c')
    expect(ask({ contrast: 'some' })).toBe('a d')
    expect(ask({ part: 'evaluation' })).toBe('d')
    expect(ask({ fromStep: 3 })).toBe('d')
    expect(ask({ fromReward: 0.2, toReward: 0.6 })).toBe('d')
    expect(ask({ task: 'C' })).toBe('c')
    expect(ids(queryGroups(rows, plainQuery, new Set(['a', 'b'])))).toBe('b a')
  })

  it('is asked by a link that says the same when it is read again', () => {
    const query = {
      sort: 'spread',
      isDescending: true,
      fromStep: 0,
      toReward: 0.5,
      task: 'a&b=c',
      contrast: 'none',
      text: 'say "hi"',
    } as const
    expect(readQuery(writeQuery(query))).toEqual(query)
    expect(readQuery({ sort: 'nothing', 'from-step': 'x', contrast: 'y' })).toEqual(plainQuery)
  })

  it('says what it can be narrowed by', () => {
    expect(facetsOf(rows)).toEqual({
      outcomes: [
        { value: 'completed', count: 3 },
        { value: 'failed in tool', count: 1 },
      ],
      reasons: [{ value: 'equal: all 0.9', count: 1 }],
      tools: [{ value: 'find', count: 1 }],
      steps: { low: 4, high: 4 },
      rewards: { low: 0.1, high: 0.9 },
      evaluations: 1,
    })
  })
})
