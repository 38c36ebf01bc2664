import { expect, it } from 'vitest'
import { late } from './late.ts'

it('is made once, when it is first asked for, even if it is undefined', () => {
  let count = 0
  const made = late(() => {
    count++
    return undefined
  })
  expect(count).toBe(0)
  expect([made(), made()]).toEqual([undefined, undefined])
  expect(count).toBe(1)
})
