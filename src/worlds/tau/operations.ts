import {
  applySign,
  calculate,
  callMethod,
  iterateData,
  lengthOfData,
  PLAIN,
  type PythonDict,
  PythonError,
  type PythonKey,
  type PythonNumber,
  type PythonValue,
  repr,
  requireHashable,
  round,
  sortedItems,
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
export const iterate = (value: PythonValue): readonly PythonValue[] =>
  Array.isArray(value) ? value : ([...iterateData(value)] as PythonValue[])

export { lengthOfData as lengthOf }

/** The method `count` of lists and strings, which other types lack. */
export const countIn = (container: PythonValue, item: PythonValue): number =>
  callMethod(container, 'count', { positional: [item] }) as number

/** The value as a list about to be changed by its method `method`, which other types lack. */
export function toList(value: PythonValue, method: 'append' | 'extend'): PythonValue[] {
  if (Array.isArray(value)) return value
  throw attributeError(value, method)
}

/** The method `lower` of strings. */
export const lower = (value: PythonValue): string => callMethod(value, 'lower') as string

/** Python's `needle in text`, a search for a substring. */
export function isInText(needle: PythonValue, text: string): boolean {
  if (typeof needle === 'string') return text.includes(needle)
  throw typeError(`'in <string>' requires string as left operand, not ${typeName(needle)}`)
}

/**
 * Python's `+`, `-` and `*`. The optional `sign` is how a failure names the operator, which for a
 * statement like `total += price` is `+=`.
 */
export const combine = (
  left: PythonValue,
  operator: '+' | '-' | '*',
  { right, sign = operator }: { readonly right: PythonValue; readonly sign?: string },
): PythonValue => calculate(PLAIN, operator, [left, right], sign) as PythonValue

/** Python's `sum` of any iterable of values, from the int 0. */
export function sumOf(values: readonly PythonValue[]): PythonValue {
  return values.reduce((total, value) => combine(total, '+', { right: value }), 0 as PythonValue)
}

/** Python's `sorted`, as a new list. */
export const sortedList = (value: PythonValue): PythonValue[] =>
  sortedItems(PLAIN, iterate(value), {}) as PythonValue[]

/** Python's unary minus. */
export const negated = (value: PythonValue): PythonValue =>
  applySign(PLAIN, '-', value) as PythonValue

/** Python's `round(x, 2)`: an int stays as it is, a float goes to cents. */
export const roundToCents = (value: PythonValue): PythonNumber => round(value, 2) as PythonNumber

/** A deep copy of containers; scalars are never changed and so are shared. */
export function copy(value: PythonValue): PythonValue {
  if (Array.isArray(value)) return value.map(copy)
  if (!(value instanceof Map)) return value
  const copied: PythonDict = new Map()
  for (const [key, item] of value) copied.set(key, copy(item))
  return copied
}
