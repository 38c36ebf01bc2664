import { PythonError } from './error.ts'
import type { PythonNumber } from './number.ts'
import type { PythonDict, PythonKey, PythonObject, PythonValue, Text, Value } from './value.ts'
import { PythonFloat, PythonSet, PythonText, PythonTuple } from './value.ts'

/** The name of a value's Python class, as error messages print it. */
export function typeName(value: Value): string {
  switch (typeof value) {
    case 'string':
      return 'str'
    case 'boolean':
      return 'bool'
    case 'bigint':
      return 'int'
    case 'number':
      return Number.isInteger(value) ? 'int' : 'float'
    default:
      return value === null ? 'NoneType' : compoundName(value)
  }
}

function compoundName(value: object): string {
  if (value instanceof PythonFloat) return 'float'
  if (value instanceof Map) return 'dict'
  if (Array.isArray(value)) return 'list'
  if (value instanceof PythonTuple) return 'tuple'
  if (value instanceof PythonSet) return 'set'
  if (value instanceof PythonText) return value.markup ? 'Markup' : 'str'
  return 'type' in value ? String(value.type) : 'object'
}

/** The value as a number if Python counts it as one (`True` is 1), else `undefined`. */
export function asNumber(value: unknown): PythonNumber | undefined {
  if (typeof value === 'number' || typeof value === 'bigint') return value
  if (typeof value === 'boolean') return value ? 1 : 0
  return value instanceof PythonFloat ? value : undefined
}

const primitive = (value: PythonNumber): number | bigint =>
  value instanceof PythonFloat ? value.value : value

/** The characters of a `str` of either kind, else `undefined`. */
export function asText(value: unknown): string | undefined {
  if (typeof value === 'string') return value
  if (typeof value !== 'object' || value === null) return undefined
  return value instanceof PythonText ? value.text : (value as PythonObject).asText
}

/** Whether the value is a `str`. */
export const isText = (value: unknown): value is Text =>
  typeof value === 'string' || value instanceof PythonText

/** Python's `==`: numbers by value across types, containers item by item. */
export function equals(left: Value, right: Value): boolean {
  if (left === right) return true
  if (typeof left === 'string' || typeof right === 'string') {
    return asText(left) === asText(right)
  }
  const leftNumber = asNumber(left)
  const rightNumber = asNumber(right)
  if (leftNumber !== undefined && rightNumber !== undefined) {
    // loose equality compares a number with a bigint exactly
    // biome-ignore lint/suspicious/noDoubleEquals: mixed int and float
    return primitive(leftNumber) == primitive(rightNumber)
  }
  if (left === null || right === null) return false
  return equalCompounds(left, right)
}

function equalCompounds(left: Value, right: Value): boolean {
  const text = asText(left)
  if (text !== undefined) return text === asText(right)
  if (left instanceof Map) return right instanceof Map && equalDicts(left, right)
  if (left instanceof PythonTuple) {
    return right instanceof PythonTuple && equalItems(left.items, right.items)
  }
  if (left instanceof PythonSet) return right instanceof PythonSet && equalSets(left, right)
  if (Array.isArray(left)) return Array.isArray(right) && equalItems(left, right)
  // a class from elsewhere may bring its own equality
  return hasEquality(left) && left.equals(right)
}

const hasEquality = (value: unknown): value is { equals(other: unknown): boolean } =>
  typeof (value as { equals?: unknown }).equals === 'function'

function equalItems(left: readonly Value[], right: readonly Value[]): boolean {
  return (
    left.length === right.length && left.every((item, index) => equals(item, right[index] as Value))
  )
}

function equalDicts(left: Map<Value, Value>, right: Map<Value, Value>): boolean {
  if (left.size !== right.size) return false
  for (const [key, item] of left) {
    const found = findKey(right, key)
    if (found === undefined || !equals(item, right.get(found) as Value)) return false
  }
  return true
}

function equalSets(left: PythonSet, right: PythonSet): boolean {
  return (
    left.items.length === right.items.length &&
    left.items.every(item => right.items.some(other => equals(item, other)))
  )
}

/** The key of the dict that equals `key` as Python compares keys (`1`, `1.0` and `True` are one). */
export function findKey<Key extends Value>(
  dict: ReadonlyMap<Key, unknown>,
  key: Key,
): Key | undefined {
  if (dict.has(key)) return key
  if (typeof key === 'string' || key === null) return undefined
  const isNumber = typeof key === 'number'
  for (const candidate of dict.keys()) {
    // a string equals only a string, and a number among numbers was found above
    if (typeof candidate === 'string' || (isNumber && typeof candidate === 'number')) continue
    if (equals(candidate, key)) return candidate
  }
  return undefined
}

/** Stores like `dict[key] = value`: an equal key keeps its place and its first spelling. */
export function storeItem(dict: PythonDict, key: PythonKey, value: PythonValue): void {
  dict.set(findKey(dict, key) ?? key, value)
}

/** How many items a tuple may hold, at any depth, to be a key. */
const MAXIMUM_KEY_ITEMS = 10_000

/** Narrows to what Python can hash, or raises its TypeError. */
export function requireHashable(value: Value): PythonKey {
  requireHashableWithin(value, { items: MAXIMUM_KEY_ITEMS })
  return value as PythonKey
}

function requireHashableWithin(value: Value, left: { items: number }): void {
  if (--left.items < 0) {
    throw new PythonError('OverflowError', `A key holds more than ${MAXIMUM_KEY_ITEMS} items.`)
  }
  if (typeof value !== 'object' || value === null) return
  if (value instanceof PythonFloat || value instanceof PythonText) return
  if (!(value instanceof PythonTuple)) {
    throw new PythonError('TypeError', `unhashable type: '${typeName(value)}'`)
  }
  for (const item of value.items) requireHashableWithin(item, left)
}

type Ordering = '<' | '<=' | '>' | '>='

/** Python's ordering comparisons, with its TypeError if two types have no order. */
export function compare(operator: Ordering, left: Value, right: Value): boolean {
  const leftText = asText(left)
  const rightText = asText(right)
  if (leftText !== undefined && rightText !== undefined) {
    return decide(operator, compareText(leftText, rightText))
  }
  const leftNumber = asNumber(left)
  const rightNumber = asNumber(right)
  if (leftNumber !== undefined && rightNumber !== undefined) {
    return compareNumbers(operator, primitive(leftNumber), primitive(rightNumber))
  }
  const leftItems = itemsToOrder(left)
  const rightItems = itemsToOrder(right)
  if (leftItems && rightItems && typeName(left) === typeName(right)) {
    return compareItems(operator, leftItems, rightItems)
  }
  throw new PythonError(
    'TypeError',
    `'${operator}' not supported between instances of '${typeName(left)}' and '${typeName(right)}'`,
  )
}

const itemsToOrder = (value: Value): readonly Value[] | undefined =>
  value instanceof PythonTuple ? value.items : Array.isArray(value) ? value : undefined

function compareItems(
  operator: Ordering,
  left: readonly Value[],
  right: readonly Value[],
): boolean {
  const shared = Math.min(left.length, right.length)
  for (let index = 0; index < shared; index++) {
    const [one, other] = [left[index] as Value, right[index] as Value]
    if (!equals(one, other)) return compare(operator, one, other)
  }
  return decide(operator, left.length - right.length)
}

/** Orders two numbers. */
export function compareNumbers(
  operator: Ordering,
  left: number | bigint,
  right: number | bigint,
): boolean {
  switch (operator) {
    case '<':
      return left < right
    case '<=':
      return left <= right
    case '>':
      return left > right
    case '>=':
      return left >= right
  }
}

function decide(operator: Ordering, order: number): boolean {
  switch (operator) {
    case '<':
      return order < 0
    case '<=':
      return order <= 0
    case '>':
      return order > 0
    case '>=':
      return order >= 0
  }
}

/** Orders texts by code points, as Python does; UTF-16 units order astral characters too low. */
export function compareText(left: string, right: string): number {
  const shared = Math.min(left.length, right.length)
  for (let index = 0; index < shared; index++) {
    const one = left.charCodeAt(index)
    const other = right.charCodeAt(index)
    if (one !== other) return codePointAround(left, index) - codePointAround(right, index)
  }
  return left.length - right.length
}

/** The code point that the unit at `index` belongs to. */
function codePointAround(text: string, index: number): number {
  const before = index === 0 ? undefined : text.codePointAt(index - 1)
  return before !== undefined && before > 0xffff ? before : (text.codePointAt(index) as number)
}
