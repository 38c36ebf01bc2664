import { expect, it } from 'vitest'
import type { Plan } from './plan.ts'
import type { Sequence } from './sequence.ts'
import { Turns } from './turns.ts'

/** So many sequences whose prompts of ten tokens are computed. */
function makeRunning(count: number): Map<number, Sequence> {
  const sequence = (id: number) =>
    ({ id, computed: 10, order: { prompt: new Int32Array(10) } }) as Partial<Sequence> as Sequence
  return new Map(Array.from({ length: count }, (_, id) => [id, sequence(id)]))
}

const open = (parameters: number) =>
  new Turns({ weightBytes: parameters * 4 } as Partial<Plan> as Plan)

it('lets few sequences go on together for some steps, and all of them equally often', () => {
  const running = makeRunning(54)
  const turns = open(1000)
  const counts = new Array<number>(54).fill(0)
  for (let step = 1; step <= 3 * 16; step++) {
    const sequences = turns.next(running, 1)
    expect(sequences).toHaveLength(18)
    for (const { id } of sequences) counts[id]!++
  }
  expect(new Set(counts)).toEqual(new Set([16]))
})

it('gives every thread as many, and makes no turns of what is hardly more than one', () => {
  expect(open(1000).next(makeRunning(200), 4)).toHaveLength(72)
  expect(open(1000).next(makeRunning(26), 1)).toHaveLength(26)
})

it('always computes prompts, whose beginnings others may wait for', () => {
  const running = makeRunning(54)
  running.set(99, { ...running.get(0)!, id: 99, computed: 3 })
  const ids = open(1000)
    .next(running, 1)
    .map(({ id }) => id)
  expect(ids).toEqual([...Array(18).keys(), 99])
})

it('makes no turns where weights are too many for the cache', () => {
  expect(open(2 ** 22).next(makeRunning(54), 1)).toHaveLength(54)
})
