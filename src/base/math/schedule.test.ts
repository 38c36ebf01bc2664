import { expect, it } from 'vitest'
import { scheduleAt } from './schedule.ts'

it('a schedule runs from its start to its end and stays there', () => {
  const linear = { kind: 'linear', from: 0.2, to: 0, steps: 10 } as const
  expect([0, 5, 10, 99].map(step => scheduleAt(linear, step))).toEqual([0.2, 0.1, 0, 0])
  const cosine = { kind: 'cosine', from: 0, to: 1, steps: 4 } as const
  expect(scheduleAt(cosine, 1)).toBeCloseTo((1 - Math.SQRT1_2) / 2, 12)
  expect(scheduleAt(cosine, 4)).toBe(1)
  expect(scheduleAt({ kind: 'constant', from: 0.05 }, 7)).toBe(0.05)
})

it('refuses a schedule with parts missing or left over', () => {
  expect(() => scheduleAt({ kind: 'linear', from: 1 }, 0)).toThrow('needs "to" and "steps"')
  expect(() => scheduleAt({ kind: 'constant', from: 1, to: 0 }, 0)).toThrow('has no end, got to 0')
  expect(() => scheduleAt({ kind: 'constant', from: 1 }, -1)).toThrow('got -1')
})
