import { expect, it } from 'vitest'
import { chainGroup } from '../../../test/export-runs.ts'
import type { Task } from '../../base/core/environment.ts'
import type { GroupId, TaskId } from '../../base/core/ids.ts'
import type { RollParts } from '../../run/run/roll-groups.ts'
import { jsonl } from '../../run/sinks/formats/jsonl.ts'
import { groupToAnswer } from './rollouts-answer.ts'

it('a group is weighed for the format before its rows are made', async () => {
  const task: Task = { id: 'pears' as TaskId, data: {} }
  const job = { id: 'pears' as GroupId, task, index: 0 }
  const parts = {} as RollParts
  const plain = await groupToAnswer(chainGroup([1, 0]), job, {
    format: jsonl,
    parts,
    weigh: undefined,
  })
  const asked: string[] = []
  const weighed = await groupToAnswer(chainGroup([1, 0]), job, {
    format: jsonl,
    parts,
    weigh: (group, format) => {
      asked.push(format.name)
      const members = group.members.map(member => ({ ...member, weight: member.weight / 2 }))
      return { ...group, members }
    },
  })
  expect(asked).toEqual(['jsonl'])
  const halved = plain.rows.map(row => JSON.stringify(row)).join()
  expect(weighed.rows).toHaveLength(plain.rows.length)
  expect(weighed.rows.map(row => JSON.stringify(row)).join()).not.toBe(halved)
})
