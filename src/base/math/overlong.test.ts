import { expect, it } from 'vitest'
import { overlongPenalty } from './overlong.ts'

it('grows over the buffer: limit 100, buffer 20', () => {
  const settings = { maximum: 100, buffer: 20 }
  const penalties = [0, 80, 90, 100, 500].map(length => overlongPenalty(length, settings))
  expect(penalties).toEqual([0, 0, -0.5, -1, -1])
  expect(overlongPenalty(90, { ...settings, factor: 0.4 })).toBeCloseTo(-0.2, 12)
  expect(() => overlongPenalty(1, { maximum: 10, buffer: 20 })).toThrow('The buffer must be')
})
