import { describe, expect, it } from 'vitest'
import { makeBatch } from './batch.ts'

interface Item {
  readonly name: string
  readonly size: number
}

/** A batch that is passed on when the test says so. */
function openHeld(most: number) {
  const passed: string[][] = []
  const errors: unknown[] = []
  const batch = makeBatch<Item>(
    async items => {
      if (items.some(({ name }) => name === 'broken')) throw new Error('broken')
      passed.push(items.map(({ name }) => name))
    },
    {
      most,
      size: ({ size }) => size,
      about: ({ name }) => name,
      onError: error => errors.push(error),
    },
  )
  return { passed, errors, batch }
}

describe('a batch', () => {
  it('passes on together what comes together, up to its size, and what is larger alone', async () => {
    const { passed, batch } = openHeld(4)
    for (const [index, size] of [2, 2, 1, 9, 1].entries()) batch.add({ name: `${index}`, size })
    await batch.flushed()
    expect(passed).toEqual([['0', '1'], ['2'], ['3'], ['4']])
  })

  it('[P1] keeps the order of what is about the same thing', async () => {
    const { passed, batch } = openHeld(9)
    for (const name of ['a', 'b', 'a', 'c', 'a']) batch.add({ name, size: 1 })
    await batch.flushed()
    expect(passed).toEqual([['a', 'b'], ['a', 'c'], ['a']])
  })

  it('tells what could not be passed on, and goes on with what comes after', async () => {
    const { passed, errors, batch } = openHeld(9)
    batch.add({ name: 'broken', size: 1 })
    await batch.flushed()
    batch.add({ name: 'a', size: 1 })
    await batch.flushed()
    expect([errors.length, passed]).toEqual([1, [['a']]])
  })
})
