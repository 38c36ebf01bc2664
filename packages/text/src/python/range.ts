import { requireInt, typeError, valueError } from './methods/arguments.ts'
import type { Value } from './value.ts'

/** The ints of a `range`: the first, the one it ends before, what is between them, and how many. */
export interface RangeParts {
  readonly start: number
  readonly stop: number
  readonly step: number
  readonly length: number
}

/** What the arguments of `range` ask for, or Python's error. */
export function readRange(given: readonly Value[]): RangeParts {
  if (given.length < 1 || given.length > 3) {
    typeError(`range expected 1 to 3 arguments, got ${given.length}`)
  }
  const numbers = given.map(value => requireInt(value, 0))
  const [first = 0, second, step = 1] = numbers
  const [start, stop] = second === undefined ? [0, first] : [first, second]
  if (step === 0) valueError('range() arg 3 must not be zero')
  return { start, stop, step, length: Math.max(0, Math.ceil((stop - start) / step)) }
}

/** The `repr` of a range. */
export const showRange = ({ start, stop, step }: Omit<RangeParts, 'length'>): string =>
  `range(${start}, ${stop}${step === 1 ? '' : `, ${step}`})`
