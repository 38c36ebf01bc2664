import { expect, it } from 'vitest'
import type { Elsewhere } from '../../run/run/elsewhere.ts'
import type { RollParts } from '../../run/run/roll-groups.ts'
import { Trainers } from './trainers.ts'

const workers = { room: 1 } as Elsewhere
const threadsOfLater = { room: 0, isOpen: false } as Elsewhere

it('refuses names where workers know one version of the weights', () => {
  const trainers = new Trainers(workers, () => {})
  expect(trainers.of().version).toBe(null)
  expect(() => trainers.of('one')).toThrow('start a service for each trainer')
})

it('makes attempts of named trainers here, where threads may be started later', () => {
  const trainers = new Trainers(threadsOfLater, () => {})
  trainers.of('one')
  const parts = { elsewhere: threadsOfLater } as RollParts
  expect(trainers.partsOf('one', parts).elsewhere).toBe(undefined)
  expect(trainers.partsOf('', parts).elsewhere).toBe(threadsOfLater)
})

it('knows a bounded number of names', () => {
  const trainers = new Trainers(undefined, () => {})
  for (let number = 1; number < 256; number++) trainers.of(`trainer-${number}`)
  expect(() => trainers.of('one-more')).toThrow('knows 256 trainers')
  expect(trainers.of('trainer-7')).toBe(trainers.of('trainer-7'))
})
