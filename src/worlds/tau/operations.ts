import {
  arithmetic,
  asNumber,
  compare,
  equals,
  negate,
  type PythonDict,
  PythonError,
  PythonFloat,
  type PythonKey,
  type PythonNumber,
  type PythonValue,
  repr,
  requireHashable,
  roundFloat,
  typeName,
} from '@espalier/text/python'

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
    const value = container.get(typeof key === 'string' ? key : requireHashable(key))
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

/** Python's `key in dict`: what cannot be hashed raises. */
export function hasKey(dict: PythonDict, key: PythonValue): key is PythonKey {
  return dict.has(typeof key === 'string' ? key : requireHashable(key))
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

/** The value as a list about to be changed by its method `method`, which other types lack. */
export function toList(value: PythonValue, method: 'append' | 'extend'): PythonValue[] {
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
  const small = combineSmall(left, operator, right)
  if (small !== undefined) return small
  const one = asNumber(left)
  const other = asNumber(right)
  if (one !== undefined && other !== undefined) return arithmetic(operator, one, other)
  const sequence = operator === '*' ? repeated(left, right) : concatenated(left, operator, right)
  if (sequence !== undefined) return sequence
  throw typeError(
    `unsupported operand type(s) for ${sign}: '${typeName(left)}' and '${typeName(right)}'`,
  )
}

/** The common case, ints whose result is exact as a number. */
function combineSmall(
  left: PythonValue,
  operator: Operator,
  right: PythonValue,
): number | undefined {
  if (!Number.isSafeInteger(left) || !Number.isSafeInteger(right)) return undefined
  const [one, other] = [left as number, right as number]
  const result = operator === '+' ? one + other : operator === '-' ? one - other : one * other
  // Adding 0 turns a negative zero, which ints do not have, into zero.
  return Number.isSafeInteger(result) ? result + 0 : undefined
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
  if (value instanceof PythonFloat) return new PythonFloat(roundCents(value.value))
  const number = asNumber(value)
  if (number === undefined) {
    throw typeError(`type ${typeName(value)} doesn't define __round__ method`)
  }
  return number
}

/** A double to cents, half to even on its exact value. */
export function roundCents(value: number): number {
  // toFixed is exact too, except that it takes the few exact ties away from zero.
  if (value === 0) return value
  const eighths = value * 8
  const isTie = Number.isInteger(eighths) && eighths % 2 !== 0
  return isTie || Math.abs(value) > 1e15 ? roundFloat(value, 2) : Number(value.toFixed(2))
}

/** A deep copy of containers; scalars are never changed and so are shared. */
export function copy(value: PythonValue): PythonValue {
  if (Array.isArray(value)) return value.map(copy)
  if (!(value instanceof Map)) return value
  const copied: PythonDict = new Map()
  for (const [key, item] of value) copied.set(key, copy(item))
  return copied
}
