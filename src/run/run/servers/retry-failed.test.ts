import { mkdtempSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, it } from 'vitest'
import type { Group } from '../../../base/core/group.ts'
import type { Policy } from '../../../base/core/policy.ts'
import { calculator } from '../../../engine/environments/built-in/calculator.ts'
import { scripted } from '../../../testing.ts'
import { openRunReader } from '../../store/store.ts'
import { roll } from '../roll.ts'

const tasks = [
  { id: 'one', prompt: '1+1?', answer: '2' },
  { id: 'two', prompt: '2+2?', answer: '2' },
]

/** Answers 2, and fails for some attempts; counts who asked. */
async function answering(
  failing: readonly string[],
): Promise<Policy & { readonly asked: string[] }> {
  const policy = await scripted(['2'])
  const asked: string[] = []
  return {
    ...policy,
    asked,
    async sample(request, call) {
      const { task, member } = request.key
      asked.push(`${task}/${member}`)
      if (failing.includes(`${task}/${member}`)) throw new Error('its engine died')
      return await policy.sample(request, call)
    },
  }
}

it('rolls what failed in a finished run, attempt by attempt, and says what changes', async () => {
  const out = join(mkdtempSync(join(tmpdir(), 'espalier-retry-')), 'run')
  const first = await answering(['one/1', 'one/2'])
  for await (const _ of roll(calculator(), tasks, { policy: first, group: 4, out }));
  const told: string[] = []
  const again = await answering([])
  const groups: Group[] = []
  const going = {
    group: 4,
    out,
    resumes: true,
    retry: 'failed',
    tell: told.push.bind(told),
  } as const
  for await (const group of roll(calculator(), tasks, { policy: again, ...going }))
    groups.push(group)
  expect(again.asked.toSorted()).toEqual(['one/1', 'one/2'])
  expect(groups.map(({ members, unscored }) => [members.length, unscored.length])).toEqual([[4, 0]])
  expect(told.join('\n')).toContain(
    '2 failed attempts are rolled again. Rewards and filters have seen',
  )
  await using reader = await openRunReader(out)
  expect(reader.groupCount).toBe(2)
  expect(reader.records().flatMap(({ unscored }) => unscored)).toEqual([])
})

it('refuses to roll again where nothing failed', async () => {
  const out = join(mkdtempSync(join(tmpdir(), 'espalier-retry-')), 'run')
  const policy = await answering([])
  for await (const _ of roll(calculator(), tasks, { policy, group: 1, out }));
  const again = roll(calculator(), tasks, { policy, group: 1, out, resumes: true, retry: 'failed' })
  await expect(again.next()).rejects.toThrow('no attempt')
})
