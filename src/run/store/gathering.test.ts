import { expect, it } from 'vitest'
import { makeGathering } from './gathering.ts'

it('passes on together what came in one turn of the event loop, and at once what is flushed', async () => {
  const passed: (readonly number[])[] = []
  const gathering = makeGathering<number>(60_000, async things => {
    passed.push(things)
  })
  for (const number of [1, 2, 3]) gathering.add(number)
  await new Promise(setImmediate)
  expect(passed).toEqual([[1, 2, 3]])

  // A minute has not passed since: these would wait.
  for (const number of [4, 5]) gathering.add(number)
  await new Promise(setImmediate)
  expect(passed).toEqual([[1, 2, 3]])
  await gathering.flush()
  expect(passed).toEqual([
    [1, 2, 3],
    [4, 5],
  ])
})

it('is flushed when what was passed on is through', async () => {
  let isThrough = false
  const gathering = makeGathering<number>(60_000, async () => {
    await new Promise(setImmediate)
    isThrough = true
  })
  await gathering.flush()
  gathering.add(1)
  await gathering.flush()
  expect(isThrough).toBe(true)
})
