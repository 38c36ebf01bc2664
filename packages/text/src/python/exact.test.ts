import { expect, it } from 'vitest'
import { divideInts } from './exact.ts'

it('divides whole numbers as Python does, rounded once even where the result is subnormal', () => {
  expect(divideInts(1n, 3n)).toBe(1 / 3)
  expect(divideInts(0n, -5n)).toBe(-0)
  expect(divideInts(10n ** 400n + 1n, 10n ** 399n)).toBe(10)
  // 3 / 2**1075 lies half-way between 2**-1074 and 2**-1073: ties go to the even one.
  expect(divideInts(3n, 2n ** 1075n)).toBe(2 ** -1073)
  expect(divideInts(-(10n ** 30n), 10n ** 345n)).toBe(-1e-315)
  expect(() => divideInts(10n ** 400n, 1n)).toThrow('integer division result too large for a float')
  expect(() => divideInts(1n, 0n)).toThrow('division by zero')
})
