import { compare, compareNumbers, equals, findKey, requireHashable } from '../python/compare.ts'
import { add as addValues, applySign as sign, calculate as work } from '../python/operators.ts'
import { askText, plain } from '../python/text/text.ts'
import type { PythonKey } from '../python/value.ts'
import { PythonFloat, PythonText } from '../python/value.ts'
import { isIterable, lengthOf, walk } from './iteration.ts'
import type { ArithmeticOperator } from './parse/syntax.ts'
import type { Run } from './run.ts'
import { charge, chargeDeeply } from './run.ts'
import type { Dict, Value } from './value.ts'
import {
  isText,
  Namespace,
  sequenceItems,
  TemplateObject,
  typeError,
  typeOf,
  Undefined,
} from './value.ts'

/** Python's truth of a value. */
export function isTrue(value: Value): boolean {
  switch (typeof value) {
    case 'boolean':
      return value
    case 'string':
      return value !== ''
    case 'number':
      return value !== 0
    case 'bigint':
      return value !== 0n
    default:
      return value !== null && isTrueObject(value)
  }
}

function isTrueObject(value: Exclude<Value, null>): boolean {
  if (value instanceof Map) return value.size > 0
  if (Array.isArray(value)) return value.length > 0
  if (value instanceof PythonFloat) return value.value !== 0
  if (value instanceof Undefined) return false
  if (value instanceof PythonText) return askText(value, isFilled)
  return lengthOf(value) !== 0
}

const isFilled = (text: string): boolean => text !== ''

/** Counts the work of comparing two values, unless it is trivial. */
function chargeComparison(run: Run, left: Value, right: Value): void {
  if (typeof left === 'string') charge(run, left)
  else if (typeof left === 'object' && typeof right === 'object') chargeDeeply(run, left)
}

/** Python's `==`. */
export function isEqual(run: Run, left: Value, right: Value): boolean {
  if (typeof left === 'string' && typeof right === 'string') {
    if (left.length > 64 && left.length === right.length) charge(run, left)
    return left === right
  }
  if (left === right) return !(left instanceof PythonFloat && Number.isNaN(left.value))
  chargeComparison(run, left, right)
  return equals(left, right)
}

/** Python's orderings; an undefined value on either side raises. */
export function isOrdered(
  run: Run,
  operator: '<' | '<=' | '>' | '>=',
  [left, right]: readonly [Value, Value],
): boolean {
  if (typeof left === 'number' && typeof right === 'number') {
    return compareNumbers(operator, left, right)
  }
  if (left instanceof Undefined) left.raise()
  if (right instanceof Undefined) right.raise()
  chargeComparison(run, left, right)
  return compare(operator, left, right)
}

/** The key under which a value is stored in dicts; raises for what Python cannot hash. */
export function toKey(value: Value): PythonKey {
  if (typeof value === 'string') return value
  if (value instanceof PythonText) return value.text
  if (isIdentity(value)) return typeError(`a '${typeOf(value)}' object cannot be a key here`)
  return requireHashable(value)
}

/** Whether Python hashes the value by identity, not by content; no dict here has such keys. */
const isIdentity = (value: Value): boolean =>
  value instanceof Undefined || value instanceof Namespace || value instanceof TemplateObject

/** The key under which a dict holds a value equal to this one. */
export function findIn(dict: Dict, key: Value): PythonKey | undefined {
  if (typeof key === 'string') return dict.has(key) ? key : undefined
  return isIdentity(key) ? undefined : findKey(dict, toKey(key))
}

/** Looks a key up in a dict as Python does. */
export function lookUp(dict: Dict, key: Value): Value | undefined {
  if (typeof key === 'string') return dict.get(key)
  const found = findIn(dict, key)
  return found === undefined ? undefined : dict.get(found)
}

/** Python's `in`. */
export function isIn(run: Run, item: Value, container: Value): boolean {
  if (isText(container)) {
    if (!isText(item)) {
      typeError(`'in <string>' requires string as left operand, not ${typeOf(item)}`)
    }
    charge(run, container)
    const wanted = plain(item)
    return askText(container, text => text.includes(wanted))
  }
  if (container instanceof Map) return lookUp(container, item) !== undefined
  const items = sequenceItems(container)
  if (items) {
    charge(run, container)
    for (const each of items) if (each === item || isEqual(run, each, item)) return true
    return false
  }
  if (!isIterable(container)) typeError(`argument of type '${typeOf(container)}' is not iterable`)
  for (const each of walk(run, container)) {
    if (each === item || isEqual(run, each, item)) return true
  }
  return false
}

/** Python's `+`. */
export const add = (run: Run, left: Value, right: Value): Value =>
  addValues(run, left, right) as Value

/** Python's arithmetic, on numbers and on what else takes part in it. */
export const calculate = (
  run: Run,
  operator: ArithmeticOperator,
  operands: readonly [Value, Value],
): Value => work(run, operator, operands) as Value

/** Python's unary `+` and `-`. */
export const applySign = (run: Run, operator: '+' | '-', value: Value): Value =>
  sign(run, operator, value) as Value
