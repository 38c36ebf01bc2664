import { expect, it } from 'vitest'
import { makeYielding } from './yielding.ts'

/** Lets attempts work for a millisecond each; gives how many did in each turn of the event loop. */
async function workPerTurn(attempts: number): Promise<readonly number[]> {
  let now = 0
  const yielding = makeYielding(() => now)
  const turns: number[] = [0]
  let isOver = false
  const turn = (): void => {
    turns.push(0)
    if (!isOver) setImmediate(turn)
  }
  setImmediate(turn)
  const work = async (): Promise<void> => {
    await yielding.whenDue()
    // Real work begins some steps after its turn has come.
    await undefined
    await undefined
    now += 0.001
    turns[turns.length - 1]!++
  }
  await Promise.all(Array.from({ length: attempts }, work))
  isOver = true
  return turns
}

it('lets attempts that wait together go on a few at a time, all of them in the end', async () => {
  const turns = await workPerTurn(1000)
  expect(turns.reduce((sum, count) => sum + count, 0)).toBe(1000)
  // The first turn does not know how long they take.
  expect(Math.max(...turns)).toBeLessThanOrEqual(16)
  expect(Math.max(...turns.slice(4))).toBeLessThanOrEqual(9)
})

it('asks nobody to wait who has not worked for long', async () => {
  let now = 0
  const yielding = makeYielding(() => now)
  await yielding.whenDue()
  now += 0.008
  expect(yielding.whenDue()).toBeUndefined()
  now += 0.001
  expect(yielding.whenDue()).toBeInstanceOf(Promise)
})
