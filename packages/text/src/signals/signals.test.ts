import { setImmediate } from 'node:timers/promises'
import { expect, it } from 'vitest'
import { holdLoop, onSignal } from './index.ts'

it('H6: signals have no answer while the loop is held, and have it again when it turns', async () => {
  const before = process.listenerCount('SIGUSR2')
  const count = (): number => process.listenerCount('SIGUSR2') - before
  onSignal('SIGUSR2', () => undefined)
  expect(count()).toBe(1)
  holdLoop()
  holdLoop()
  expect(count()).toBe(0)
  await setImmediate()
  expect(count()).toBe(1)
})
