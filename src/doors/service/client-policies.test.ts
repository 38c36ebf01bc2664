import { afterEach, beforeEach, expect, it, vi } from 'vitest'
import { type Policy, plainCapabilities } from '../../base/core/policy.ts'
import { ClientPolicies } from './client-policies.ts'

const closed: string[] = []
beforeEach(() => void vi.useFakeTimers())
afterEach(() => void vi.useRealTimers())

function policy(name: string): Policy {
  return {
    name,
    capabilities: plainCapabilities,
    sample: () => Promise.reject(new Error('nobody samples here')),
    [Symbol.asyncDispose]: async () => void closed.push(name),
  }
}

it('a policy stays open for those who were lent it, although the weights are served elsewhere now', async () => {
  await using policies = new ClientPolicies({
    own: policy('own'),
    idleSeconds: 600,
    open: async uri => policy(uri),
  })
  expect((await policies.lend('')).policy.name).toBe('own')
  await policies.moveTo('', 'sglang:old')
  const lent = await policies.lend('')
  expect([lent.policy.name, lent.endpoint]).toEqual(['sglang:old', 'sglang:old'])
  await policies.moveTo('', 'sglang:new')
  await vi.advanceTimersByTimeAsync(3_600_000)
  expect(closed).toEqual([])
  lent.giveBack()
  await vi.advanceTimersByTimeAsync(3_600_000)
  expect(closed).toEqual(['sglang:old'])
  expect((await policies.lend('')).endpoint).toBe('sglang:new')
})

it('where the weights of one trainer are served is nothing to the other', async () => {
  await using policies = new ClientPolicies({
    own: policy('own'),
    idleSeconds: 600,
    open: async uri => policy(uri),
  })
  await policies.moveTo('one', 'sglang:one')
  await policies.moveTo('other', 'sglang:other')
  expect((await policies.lend('one')).endpoint).toBe('sglang:one')
  expect((await policies.lend('other')).endpoint).toBe('sglang:other')
  expect((await policies.lend('third')).policy.name).toBe('own')
})
