import { afterEach, beforeEach, expect, it, vi } from 'vitest'
import { disposalSeconds } from '../../base/core/process/deadline.ts'
import { closeEnvironment } from './close-environment.ts'

beforeEach(() => void vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] }))
afterEach(() => void vi.useRealTimers())

it('an environment that never ends is left after a while, with a warning', async () => {
  const told: string[] = []
  const never = { name: 'shop', [Symbol.asyncDispose]: () => new Promise<void>(() => {}) }
  const closing = closeEnvironment(never, line => told.push(line))
  await vi.advanceTimersByTimeAsync(disposalSeconds * 1000)
  await closing
  expect(told).toEqual([
    expect.stringMatching(/^WARNING environment "shop" was not disposed of: .*longer than 30 s$/),
  ])
})

it('an environment that cannot be disposed of costs nothing of what was rolled', async () => {
  const told: string[] = []
  const broken = { name: 'shop', [Symbol.asyncDispose]: () => Promise.reject(new Error('stuck')) }
  await closeEnvironment(broken, line => told.push(line))
  expect(told).toEqual([expect.stringContaining('"shop" was not disposed of: ')])
  expect(told[0]).toContain('stuck')
  await closeEnvironment({ name: 'none' }, line => told.push(line))
  expect(told).toHaveLength(1)
})
