import { expect, it } from 'vitest'
import { betaDraw } from './beta.ts'
import { random, seedOf } from './random.ts'
import { deviation, mean } from './statistics.ts'

it.each([
  [1, 1],
  [3, 1],
  [2.5, 7],
])('draws from Beta(%f, %f) have its mean and spread', (a, b) => {
  const draw = random(seedOf('beta', a, b))
  const values = Array.from({ length: 20_000 }, () => betaDraw(a, b, draw))
  expect(mean(values)).toBeCloseTo(a / (a + b), 2)
  expect(deviation(values)).toBeCloseTo(Math.sqrt((a * b) / (a + b + 1)) / (a + b), 2)
  expect(() => betaDraw(0.5, 1, draw)).toThrow('a')
})
