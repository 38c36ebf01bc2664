import { expect, it, vi } from 'vitest'
import { dicePolicy, openByteRenderer } from '../../../test/rolling.ts'
import { calculator } from '../../engine/environments/built-in/calculator.ts'
import { makeEstimate } from '../../engine/weigh/estimate.ts'
import { Rollouts } from './rollouts.ts'
import type { RolloutsOptions } from './rollouts-options.ts'

const renderer = await openByteRenderer()
const environment = calculator()
const tasks = [1, 2, 3].map(number => ({ prompt: `${number} + 1`, answer: String(number + 1) }))

function openRollouts(options: Partial<RolloutsOptions> = {}): Rollouts {
  const policy = dicePolicy(renderer)
  return new Rollouts({
    parts: { environment, policy, renderer, estimate: makeEstimate('grpo'), group: 2 },
    openPolicy: async () => policy,
    findTask: async () => undefined,
    ...options,
  })
}

it('a cursor that no group of a submission can have lets go of nothing', async () => {
  await using rollouts = openRollouts()
  await rollouts.submit({ id: 'mine', tasks })
  const wrong = { statusCode: 400, message: '"mine" has 3 groups, and none with the cursor 4' }
  await expect(rollouts.take('mine', { after: 4 })).rejects.toMatchObject(wrong)
  await expect(rollouts.take('mine', { after: 4, acknowledges: false })).rejects.toMatchObject(
    wrong,
  )
  expect(() => rollouts.acknowledge('mine', 4)).toThrow(wrong.message)
  await vi.waitFor(() => expect(rollouts.status('mine').finished).toBe(3), 30_000)
  expect((await rollouts.take('mine')).groups).toHaveLength(3)
})

it('the operator is told where a submission waits for groups that nobody takes', async () => {
  const lines: string[] = []
  await using rollouts = openRollouts({ results: 2, tell: line => lines.push(line) })
  await rollouts.submit({ id: 'gone', tasks })
  await vi.waitFor(() => expect(rollouts.counts).toMatchObject({ waiting: 2, running: 0 }), 30_000)
  expect(lines).toEqual([])
  await rollouts.submit({ id: 'waits', tasks: tasks.slice(1) })
  expect(lines).toEqual([expect.stringMatching(/^"waits" is not rolled: .*: 2 of "gone"\. POST /)])
  rollouts.acknowledge('gone', 2)
  await vi.waitFor(() => expect(rollouts.status('gone').finished).toBe(3), 30_000)
  rollouts.acknowledge('gone', 3)
  await vi.waitFor(() => expect(rollouts.status('waits').finished).toBe(2), 30_000)
  expect(lines).toHaveLength(1)
})
