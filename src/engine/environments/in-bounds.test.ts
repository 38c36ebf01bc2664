import { expect, it } from 'vitest'
import { z } from 'zod'
import { makeLanes } from '../../base/core/lane.ts'
import { environment } from './environment.ts'
import { inBounds } from './in-bounds.ts'

it('a world is disposed of also when whoever opened it was stopped', async () => {
  let disposed = 0
  const counting = environment({
    name: 'counting',
    task: z.object({}),
    open: () => ({ opening: [{ role: 'user', content: 'x' }], dispose: () => void disposed++ }),
    reward: {},
  })
  const stop = new AbortController()
  const bounded = inBounds(counting, { seconds: 5, signal: stop.signal })
  const lanes = makeLanes({ policy: 1, tools: 1, environment: 1, reward: 1 })
  const task = { id: 'one' as never, data: {} }
  const world = await bounded.open(task, { signal: stop.signal, seed: 0, lanes })
  stop.abort()
  await world[Symbol.asyncDispose]()
  expect(disposed).toBe(1)
})
