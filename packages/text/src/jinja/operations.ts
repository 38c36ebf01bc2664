import {
  asNumber,
  compare,
  compareNumbers,
  equals,
  findKey,
  requireHashable,
} from '../python/compare.ts'
import type { PythonNumber } from '../python/number.ts'
import { arithmetic, negate } from '../python/number.ts'
import type { PythonKey, PythonValue } from '../python/value.ts'
import { PythonFloat, PythonTuple } from '../python/value.ts'
import { escapeHtml } from './filters/html.ts'
import { isIterable, lengthOf, walk } from './iteration.ts'
import { formatPercent } from './methods/format-percent.ts'
import type { ArithmeticOperator } from './parse/syntax.ts'
import type { Run } from './run.ts'
import { charge, chargeDeeply, spend, spendText } from './run.ts'
import { TemplateText } from './template-text.ts'
import { askText, isMarkup, joinTexts, plain, sizeOf, toMarkup } from './text.ts'
import type { Dict, Text, Value } from './value.ts'
import {
  isList,
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
  if (value instanceof TemplateText) return askText(value, isFilled)
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
  return equals(left as PythonValue, right as PythonValue)
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
  return compare(operator, left as PythonValue, right as PythonValue)
}

/** The key under which a value is stored in dicts; raises for what Python cannot hash. */
export function toKey(value: Value): PythonKey {
  if (typeof value === 'string') return value
  if (value instanceof TemplateText) return value.text
  if (isIdentity(value)) return typeError(`a '${typeOf(value)}' object cannot be a key here`)
  return requireHashable(value as PythonValue)
}

/** Whether Python hashes the value by identity, not by content; no dict here has such keys. */
const isIdentity = (value: Value): boolean =>
  value instanceof Undefined || value instanceof Namespace || value instanceof TemplateObject

/** Looks a key up in a dict as Python does. */
export function lookUp(dict: Dict, key: Value): Value | undefined {
  if (typeof key === 'string') return dict.get(key)
  if (isIdentity(key)) return undefined
  const found = findKey(dict as Map<PythonKey, PythonValue>, toKey(key))
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
export function add(run: Run, left: Value, right: Value): Value {
  if (typeof left === 'string' && typeof right === 'string') {
    const text = left + right
    if (text.length > run.limits.characters) spendText(run, text.length)
    return text
  }
  if (typeof left === 'number' && typeof right === 'number') return arithmetic('+', left, right)
  refuseUndefined(left, right)
  if (isText(left) && isText(right)) return addTexts(run, left, right)
  if (isList(left) && isList(right)) {
    spend(run, 8 * (left.length + right.length))
    return [...left, ...right]
  }
  if (left instanceof PythonTuple && right instanceof PythonTuple) {
    spend(run, 8 * (left.items.length + right.items.length))
    return new PythonTuple([...left.items, ...right.items])
  }
  return addNumbers(left, right)
}

function addNumbers(left: Value, right: Value): Value {
  const [one, other] = [asNumber(left), asNumber(right)]
  if (one !== undefined && other !== undefined) return arithmetic('+', one, other)
  if (isText(left)) return typeError(`can only concatenate str (not "${typeOf(right)}") to str`)
  const sequence = sequenceItems(left) ? typeOf(left) : undefined
  if (sequence !== undefined) {
    return typeError(`can only concatenate ${sequence} (not "${typeOf(right)}") to ${sequence}`)
  }
  return unsupported('+', left, right)
}

function addTexts(run: Run, left: Text, right: Text): Text {
  spendText(run, sizeOf(left) + sizeOf(right))
  // markup escapes what is added to it, from either side
  if (isMarkup(left) || isMarkup(right)) {
    return toMarkup(joinTexts([escapeHtml(left), escapeHtml(right)]))
  }
  return joinTexts([left, right])
}

function refuseUndefined(left: Value, right: Value): void {
  if (left instanceof Undefined) left.raise()
  if (right instanceof Undefined) right.raise()
}

function unsupported(operator: string, left: Value, right: Value): never {
  const name = operator === '**' ? '** or pow()' : operator
  return typeError(
    `unsupported operand type(s) for ${name}: '${typeOf(left)}' and '${typeOf(right)}'`,
  )
}

/** Python's arithmetic, on numbers and where strings and lists take part in it. */
export function calculate(
  run: Run,
  operator: ArithmeticOperator,
  operands: readonly [Value, Value],
): Value {
  const [left, right] = operands
  if (typeof left === 'number' && typeof right === 'number' && operator !== '**') {
    return arithmetic(operator, left, right)
  }
  if (operator === '+') return add(run, left, right)
  if (operator === '%' && isText(left)) return formatPercent(run, left, right)
  refuseUndefined(left, right)
  const [one, other] = [asNumber(left), asNumber(right)]
  if (one !== undefined && other !== undefined) {
    if (typeof one === 'bigint' || typeof other === 'bigint' || operator === '**') spend(run, 1000)
    return arithmetic(operator, one, other)
  }
  if (operator === '*') return repeat(run, left, right)
  return unsupported(operator, left, right)
}

function repeat(run: Run, left: Value, right: Value): Value {
  const [sequence, count] = isRepeatable(left) ? [left, right] : [right, left]
  if (!isRepeatable(sequence)) return unsupported('*', left, right)
  const times = asNumber(count)
  if (times === undefined || times instanceof PythonFloat) {
    return typeError(`can't multiply sequence by non-int of type '${typeOf(count)}'`)
  }
  const repetitions = Math.max(0, Number(times))
  if (isText(sequence)) return repeatText(run, sequence, repetitions)
  const items = sequenceItems(sequence) as readonly Value[]
  spend(run, 8 * items.length * repetitions)
  const repeated: Value[] = []
  for (let round = 0; round < repetitions; round++) repeated.push(...items)
  return isList(sequence) ? repeated : new PythonTuple(repeated)
}

const isRepeatable = (value: Value): boolean => isText(value) || sequenceItems(value) !== undefined

function repeatText(run: Run, text: Text, times: number): Text {
  spendText(run, plain(text).length * times)
  if (typeof text === 'string') return text.repeat(times)
  const repeated = joinTexts(new Array<Text>(times).fill(text))
  return text.markup ? toMarkup(repeated) : repeated
}

/** Python's unary `+` and `-`. */
export function applySign(operator: '+' | '-', value: Value): Value {
  if (value instanceof Undefined) value.raise()
  const number = asNumber(value)
  if (number === undefined) {
    return typeError(`bad operand type for unary ${operator}: '${typeOf(value)}'`)
  }
  return operator === '-' ? negate(number as PythonNumber) : number
}
