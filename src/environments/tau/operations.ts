import { asNumber, compare, equals, requireHashable, typeName } from '../../python/compare.ts'
import { PythonError } from '../../python/error.ts'
import { arithmetic, negate, type PythonNumber, roundFloat } from '../../python/number.ts'
import { repr } from '../../python/repr.ts'
import {
  type PythonDict,
  PythonFloat,
  type PythonKey,
  type PythonValue,
} from '../../python/value.ts'

/** A `TypeError` with Python's words. */
export function typeError(message: string): PythonError {
  return new PythonError('TypeError', message)
}

function attributeError(value: PythonValue, attribute: string): PythonError {
  return new PythonError(
    'AttributeError',
    `'${typeName(value)}' object has no attribute '${attribute}'`,
  )
}

/** Python's `dict[key]` on a value that may not be a dict at all. */
export function itemOf(container: PythonValue, key: PythonValue): PythonValue {
  if (container instanceof Map) {
    const value = container.get(requireHashable(key))
    if (value === undefined) throw new PythonError('KeyError', repr(key))
    return value
  }
  if (typeof container === 'string') {
    throw typeError(`string indices must be integers, not '${typeName(key)}'`)
  }
  if (Array.isArray(container)) {
    throw typeError(`list indices must be integers or slices, not ${typeName(key)}`)
  }
  throw typeError(`'${typeName(container)}' object is not subscriptable`)
}

/** Python's `container[key] = value` for keys that are strings. */
export function setItem(container: PythonValue, key: string, value: PythonValue): void {
  if (container instanceof Map) {
    container.set(key, value)
  } else if (Array.isArray(container)) {
    throw typeError('list indices must be integers or slices, not str')
  } else {
    throw typeError(`'${typeName(container)}' object does not support item assignment`)
  }
}

/** Python's `key in dict`: what cannot be hashed raises. */
export function hasKey(dict: PythonDict, key: PythonValue): key is PythonKey {
  return dict.has(requireHashable(key))
}

/** Python's iteration: a string by its characters, a dict by its keys. */
export function iterate(value: PythonValue): readonly PythonValue[] {
  if (Array.isArray(value)) return value
  if (typeof value === 'string') return [...value]
  if (value instanceof Map) return [...value.keys()]
  throw typeError(`'${typeName(value)}' object is not iterable`)
}

/** Python's `len`. */
export function lengthOf(value: PythonValue): number {
  if (Array.isArray(value)) return value.length
  if (typeof value === 'string') return [...value].length
  if (value instanceof Map) return value.size
  throw typeError(`object of type '${typeName(value)}' has no len()`)
}

/** The method `count` of lists and strings, which other types lack. */
export function countIn(container: PythonValue, item: PythonValue): number {
  if (Array.isArray(container)) {
    return container.filter(candidate => candidate === item || equals(candidate, item)).length
  }
  if (typeof container === 'string') return container.split(item as string).length - 1
  throw attributeError(container, 'count')
}

/** The list behind a value about to be extended in place by the list method `method`. */
export function listToChange(value: PythonValue, method: 'append' | 'extend'): PythonValue[] {
  if (Array.isArray(value)) return value
  throw attributeError(value, method)
}

/** The method `lower` of strings. */
export function lower(value: PythonValue): string {
  if (typeof value === 'string') return value.toLowerCase()
  throw attributeError(value, 'lower')
}

/** Python's `needle in text`, a search for a substring. */
export function isInText(needle: PythonValue, text: string): boolean {
  if (typeof needle === 'string') return text.includes(needle)
  throw typeError(`'in <string>' requires string as left operand, not ${typeName(needle)}`)
}

type Operator = '+' | '-' | '*'

/**
 * Python's `+`, `-` and `*`. The optional `sign` is how a failure names the operator, which for a
 * statement like `total += price` is `+=`.
 */
export function combine(
  left: PythonValue,
  operator: Operator,
  { right, sign = operator }: { readonly right: PythonValue; readonly sign?: string },
): PythonValue {
  const one = asNumber(left)
  const other = asNumber(right)
  if (one !== undefined && other !== undefined) return arithmetic(operator, one, other)
  const sequence = operator === '*' ? repeated(left, right) : concatenated(left, operator, right)
  if (sequence !== undefined) return sequence
  throw typeError(
    `unsupported operand type(s) for ${sign}: '${typeName(left)}' and '${typeName(right)}'`,
  )
}

/** Longer sequences than this are refused; Python would build them until memory ends. */
const MAXIMUM_LENGTH = 100_000_000

function repeated(left: PythonValue, right: PythonValue): PythonValue | undefined {
  const [sequence, count] = isSequence(left) ? [left, right] : [right, left]
  if (!isSequence(sequence)) return undefined
  const times = asNumber(count)
  if (times === undefined || times instanceof PythonFloat) {
    throw typeError(`can't multiply sequence by non-int of type '${typeName(count)}'`)
  }
  const copies = Math.max(0, Number(times))
  if (copies * sequence.length > MAXIMUM_LENGTH) throw new PythonError('MemoryError', '')
  if (typeof sequence === 'string') return sequence.repeat(copies)
  return Array.from({ length: copies }, () => sequence).flat()
}

const isSequence = (value: PythonValue): value is string | readonly PythonValue[] =>
  typeof value === 'string' || Array.isArray(value)

function concatenated(
  left: PythonValue,
  operator: Operator,
  right: PythonValue,
): PythonValue | undefined {
  if (operator !== '+') return undefined
  if (typeof left === 'string') {
    if (typeof right === 'string') return left + right
    throw typeError(`can only concatenate str (not "${typeName(right)}") to str`)
  }
  if (!Array.isArray(left)) return undefined
  if (Array.isArray(right)) return [...left, ...right]
  throw typeError(`can only concatenate list (not "${typeName(right)}") to list`)
}

/** Python's `sum` of any iterable of values, from the int 0. */
export function sumOf(values: readonly PythonValue[]): PythonValue {
  return values.reduce((total, value) => combine(total, '+', { right: value }), 0 as PythonValue)
}

/** Python's `sorted`, as a new list. */
export function sortedList(value: PythonValue): PythonValue[] {
  return [...iterate(value)].sort((left, right) =>
    compare('<', left, right) ? -1 : compare('<', right, left) ? 1 : 0,
  )
}

/** Python's unary minus. */
export function negated(value: PythonValue): PythonValue {
  const number = asNumber(value)
  if (number === undefined) throw typeError(`bad operand type for unary -: '${typeName(value)}'`)
  return negate(number)
}

/** Python's `round(x, 2)`: an int stays as it is, a float goes to cents. */
export function roundToCents(value: PythonValue): PythonNumber {
  if (value instanceof PythonFloat) return new PythonFloat(roundFloat(value.value, 2))
  const number = asNumber(value)
  if (number === undefined) {
    throw typeError(`type ${typeName(value)} doesn't define __round__ method`)
  }
  return number
}

/** A deep copy of containers; scalars are never changed and so are shared. */
export function copy(value: PythonValue): PythonValue {
  if (Array.isArray(value)) return value.map(copy)
  return value instanceof Map ? copyDict(value) : value
}

/** A deep copy of a dict. */
export function copyDict(dict: PythonDict): PythonDict {
  const copied: PythonDict = new Map()
  for (const [key, value] of dict) copied.set(key, copy(value))
  return copied
}
