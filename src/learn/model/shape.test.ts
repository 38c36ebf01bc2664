import { expect, it } from 'vitest'
import { checkShape, countParameters } from './shape.ts'

const shape = { vocabulary: 300, width: 64, layers: 3, heads: 4, hidden: 176, context: 256 }

it('counts the parameters of a model by hand', () => {
  const layer = 4 * 64 * 64 + 3 * 64 * 176 + 2 * 64
  expect(countParameters(shape)).toBe(300 * 64 + 3 * layer + 64)
})

it.each([
  [{ width: 60 }, 'multiple of 8; got width 60 and 4 heads'],
  [{ hidden: 170 }, 'for instance 176'],
  [{ context: 0 }, "model's context must be a whole number from 1 to 131072: 0"],
  [{ layers: 1.5 }, "model's layers"],
  [{ vocabulary: undefined as unknown as number }, "model's vocabulary"],
  [{ width: 1024, hidden: 4096, layers: 32 }, 'parameters are too many'],
])('refuses %o', (changes, message) => {
  expect(() => checkShape({ ...shape, ...changes })).toThrow(message)
})
