import fc from 'fast-check'
import { expect, it } from 'vitest'
import { NumberMap } from './number-map.ts'

/** What is done to a map: a number comes, or goes. */
const steps = fc.array(
  fc.record({ number: fc.integer({ min: 0, max: 40 }), comes: fc.boolean() }),
  { maxLength: 200 },
)

it('holds what a Map holds, whatever comes and goes', () => {
  fc.assert(
    fc.property(steps, fc.constantFrom(1, 8, 2 ** 20), (changes, apart) => {
      const [ours, map] = [new NumberMap<{ at: number }>(), new Map<number, { at: number }>()]
      changes.forEach(({ number, comes }, at) => {
        const key = number * apart
        if (comes) {
          ours.set(key, { at })
          map.set(key, { at })
        } else {
          expect(ours.take(key)).toEqual(map.get(key))
          map.delete(key)
        }
      })
      expect(ours.size).toBe(map.size)
      expect(ours.numbers()).toEqual([...map.keys()].sort((a, b) => a - b))
      for (const [key, thing] of map) expect(ours.get(key)).toEqual(thing)
    }),
  )
})

it('holds thousands at one time', () => {
  const map = new NumberMap<{ number: number }>()
  const all = Array.from({ length: 5000 }, (_, number) => number)
  for (const number of all) map.set(number, { number })
  const taken = all.filter(number => number % 2 === 0).map(number => map.take(number)?.number)
  expect(taken).toEqual(all.filter(number => number % 2 === 0))
  expect(map.size).toBe(2500)
  const left = all.filter(number => map.get(number)?.number === number)
  expect(left).toEqual(all.filter(number => number % 2 === 1))
})
