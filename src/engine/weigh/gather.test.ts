import { expect, it } from 'vitest'
import type { Filter, Group, Scored } from '../../base/core/group.ts'
import { judge } from './gather.ts'

const group = { members: [], unscored: [] } as Partial<Group<Scored>> as Group<Scored>

it.each([null, undefined, 5, {}])('says what a filter that gives %j should give', gives => {
  const filter = { name: 'mine', judge: () => gives } as object as Filter
  expect(() => judge(group, [filter])).toThrow(
    /^the filter "mine" must give a Map .* gave (null|undefined|number|object)$/,
  )
})

it('takes verdicts as a Map, or as pairs', () => {
  const filters = [new Map(), []].map(gives => ({ name: 'mine', judge: () => gives }) as object)
  expect(judge(group, filters as Filter[]).members).toEqual([])
})
