import { expect, it } from 'vitest'
import { makeNth } from './nth.ts'

it('counts samples of one turn, and anew for an attempt that is made again', () => {
  const nth = makeNth()
  const key = { task: 'a', member: 0, branch: '', turn: 0 }
  expect([nth(key), nth(key, 2), nth(key)]).toEqual([0, 1, 3])
  expect([nth({ ...key, turn: 1 }), nth(key)]).toEqual([0, 0])
  expect([nth({ ...key, making: '1' }), nth({ ...key, making: '2' })]).toEqual([0, 0])
})
