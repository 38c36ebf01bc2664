import { expect, it } from 'vitest'
import type { Group } from '../../base/core/group.ts'
import type { Failed } from '../../base/core/outcome.ts'
import { keepSecret } from '../../base/core/process/secrets.ts'
import { failuresOf, makeFailureTelling } from './group-failures.ts'

/** A group of attempts that failed in the policy with these messages; only their outcomes are looked at. */
const groupOf = (...messages: readonly string[]): Pick<Group, 'unscored'> => ({
  unscored: messages.map(message => {
    const outcome: Failed = { kind: 'failed', boundary: 'policy', message }
    return { outcome } as Group['unscored'][number]
  }),
})

it('O1: failures of a group are told with their boundary, equal ones counted together', () => {
  const { unscored } = groupOf('port 8001 refused', 'no such model', 'port 8002 refused')
  const outcome = { kind: 'aborted', by: 'time' } as const
  const aborted = { ...unscored[0]!, outcome }
  expect(failuresOf({ unscored: [...unscored, aborted] })).toEqual([
    { where: 'failed in policy', message: 'port N refused', count: 2 },
    { where: 'failed in policy', message: 'no such model', count: 1 },
    { where: 'aborted', message: 'time', count: 1 },
  ])
  expect(failuresOf(groupOf())).toEqual([])
})

it('H7: however many reasons there are and however long they are, a group tells a few lines', () => {
  const letters = Array.from({ length: 26 }, (_, n) => String.fromCharCode(97 + n))
  const failures = failuresOf(groupOf('often', ...letters.map(each => each.repeat(9000)), 'often'))
  expect(failures).toHaveLength(8)
  expect(failures[0]).toEqual({ where: 'failed in policy', message: 'often', count: 2 })
  expect(failures[1]?.message).toHaveLength(200)
})

it('H4: a reason has no secret in it, known or only likely', () => {
  keepSecret('open-sesame-open')
  const [known, likely] = failuresOf(
    groupOf('401 for open-sesame-open', 'refused: Bearer abcdefghijklmnop'),
  )
  expect(known?.message).toBe('N for [redacted]')
  expect(likely?.message).toBe('refused: Bearer [redacted]')
})

it('the operator is told each reason once', () => {
  const lines: string[] = []
  const tell = makeFailureTelling(line => lines.push(line))
  const failures = failuresOf(groupOf('port 8001 refused', 'port 8002 refused'))
  tell({ group: 'one/0', failures })
  tell({ group: 'one/1', failures })
  expect(lines).toEqual(['an attempt of one/0 failed in policy: port N refused (told once)'])
  for (let number = 0; number < 500; number++) {
    const message = 'x'.repeat(number)
    tell({ group: 'two/0', failures: [{ where: 'failed in tool', message, count: 1 }] })
  }
  expect(lines).toHaveLength(100)
})
