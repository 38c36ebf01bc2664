import {
  type BinaryOperator,
  calculate,
  compare,
  countCharacters,
  equals,
  findKey,
  PythonFloat,
  requireHashable,
  typeName,
} from '@espalier/text/python'
import { ProgramDate, TimeDelta } from './dates.ts'
import { DictView, ProgramIterator, ProgramRange } from './iterables.ts'
import { ProgramPath } from './paths.ts'
import { RUNTIME } from './runtime.ts'
import { TypeForm } from './type-form.ts'
import {
  BuiltinClass,
  type Dict,
  EnumMember,
  ExceptionClass,
  Instance,
  Opaque,
  ProgramClass,
  ProgramFunction,
  ProgramObject,
  PythonError,
  PythonSet,
  PythonTuple,
  typeError,
  unwrap,
  type Value,
} from './values.ts'

/** The name of a value's class, as errors print it. */
export const nameOf = (value: Value): string =>
  value instanceof PythonError ? value.type : typeName(value)

/** Python's truth. */
export function isTrue(value: Value): boolean {
  if (value === null || value === false || value === 0 || value === '') return false
  if (typeof value !== 'object') return value !== 0n
  if (Array.isArray(value)) return value.length > 0
  if (value instanceof Map) return value.size > 0
  if (value instanceof PythonFloat) return value.value !== 0
  if (value instanceof PythonTuple || value instanceof PythonSet) return value.items.length > 0
  if (value instanceof DictView) return value.dict.size > 0
  if (value instanceof ProgramRange) return value.length > 0
  const text = unwrap(value)
  return typeof text === 'string' ? text !== '' : true
}

/** Python's `==`. */
export function isEqual(left: Value, right: Value): boolean {
  if (left === right) return true
  if (typeof left === 'string' && typeof right === 'string') return false
  const [one, other] = [unwrap(left), unwrap(right)]
  if (one instanceof Instance && other instanceof Instance) return isEqualModel(one, other)
  if (one instanceof PythonError || other instanceof PythonError) return one === other
  return equals(one, other)
}

function isEqualModel(left: Instance, right: Instance): boolean {
  if (left.class !== right.class || left.class.kind !== 'model') return left === right
  if (left.fields.size !== right.fields.size) return false
  for (const [name, value] of left.fields) {
    const other = right.fields.get(name)
    if (other === undefined || !isEqual(value, other)) return false
  }
  return true
}

/** Python's `is`. */
export const isSame = (left: Value, right: Value): boolean =>
  left === right ||
  (left instanceof PythonFloat && right instanceof PythonFloat && left.value === right.value)

type Ordering = '<' | '<=' | '>' | '>='

/** Python's order, dates included. */
export function isOrdered(operator: Ordering, left: Value, right: Value): boolean {
  const [one, other] = [unwrap(left), unwrap(right)]
  if (one instanceof ProgramDate && other instanceof ProgramDate && one.hasTime === other.hasTime) {
    return compare(operator, one.at, other.at)
  }
  if (one instanceof ProgramDate && other instanceof ProgramDate) {
    throw typeError(`can't compare datetime.datetime to datetime.date`)
  }
  if (one instanceof TimeDelta && other instanceof TimeDelta) {
    return compare(operator, one.milliseconds, other.milliseconds)
  }
  return compare(operator, one, other)
}

/** The key under which a dict holds a value equal to this one. */
export function keyIn(dict: Dict, key: Value): Value | undefined {
  if (dict.has(key)) return key
  if (typeof key === 'string' || key === null) {
    return typeof key === 'string' ? memberKey(dict, key) : undefined
  }
  if (key instanceof EnumMember) return dict.has(unwrap(key)) ? unwrap(key) : undefined
  requireKey(key)
  if (key instanceof ProgramObject) return undefined
  return findKey(dict, key)
}

/** The enum member that equals a text, if the dict's first key is an enum member. */
function memberKey(dict: Dict, text: string): Value | undefined {
  const [first] = dict.keys()
  if (!(first instanceof EnumMember)) return undefined
  for (const key of dict.keys()) if (unwrap(key) === text) return key
  return undefined
}

/** What Python can hash, or its TypeError. */
export function requireKey(value: Value): void {
  if (typeof value !== 'object' || value === null) return
  if (value instanceof ProgramObject && !(value instanceof Instance)) return
  if (value instanceof Instance && value.class.kind !== 'model') return
  if (value instanceof PythonTuple) {
    for (const item of value.items) requireKey(item)
    return
  }
  requireHashable(value)
}

/** Python's `item in container`. */
export function isIn(item: Value, container: Value): boolean {
  const within = unwrap(container)
  if (typeof within === 'string') {
    const needle = unwrap(item)
    if (typeof needle === 'string') return within.includes(needle)
    throw typeError(`'in <string>' requires string as left operand, not ${nameOf(item)}`)
  }
  if (within instanceof Map) return keyIn(within, item) !== undefined
  if (within instanceof DictView && within.part === 'keys')
    return keyIn(within.dict, item) !== undefined
  if (within instanceof PythonSet) requireKey(item)
  if (!isIterable(within)) {
    throw typeError(`argument of type '${nameOf(within)}' is not iterable`)
  }
  for (const candidate of iterate(within)) if (isEqual(candidate, item)) return true
  return false
}

/** Python's `len`, of texts in code points. */
export function lengthOf(value: Value): number {
  const known = unwrap(value)
  if (typeof known === 'string') return countCharacters(known)
  if (Array.isArray(known)) return known.length
  if (known instanceof Map) return known.size
  if (known instanceof PythonTuple || known instanceof PythonSet) return known.items.length
  if (known instanceof DictView) return known.dict.size
  if (known instanceof ProgramRange) return known.length
  throw typeError(`object of type '${nameOf(value)}' has no len()`)
}

const isIterable = (value: Value): boolean =>
  typeof value === 'string' ||
  Array.isArray(value) ||
  value instanceof Map ||
  value instanceof PythonTuple ||
  value instanceof PythonSet ||
  value instanceof ProgramIterator ||
  value instanceof DictView ||
  value instanceof ProgramRange ||
  (value instanceof ProgramClass && value.kind === 'enum')

/** Python's iteration: a text by its characters, a dict by its keys, an enum by its members. */
export function iterate(value: Value): Iterable<Value> {
  const known = unwrap(value)
  if (typeof known === 'string' || Array.isArray(known)) return known
  if (known instanceof Map) return known.keys()
  if (known instanceof PythonTuple || known instanceof PythonSet)
    return known.items as readonly Value[]
  if (known instanceof DictView || known instanceof ProgramRange) return known
  if (known instanceof ProgramIterator) return { [Symbol.iterator]: () => known.iterator }
  if (known instanceof ProgramClass && known.kind === 'enum') return membersOf(known)
  if (known instanceof Instance && known.class.kind === 'model') return pairsOf(known)
  throw typeError(`'${nameOf(value)}' object is not iterable`)
}

function* pairsOf(model: Instance): Generator<Value> {
  for (const [name, value] of model.fields) yield new PythonTuple([name, value])
}

/** The members of an enum, in order. */
export function membersOf(enumeration: ProgramClass): EnumMember[] {
  const members: EnumMember[] = []
  for (const value of enumeration.attributes.values()) {
    if (value instanceof EnumMember && !members.includes(value)) members.push(value)
  }
  return members
}

/** Python's binary operators; `sign` is how a failure names the operator. */
export function operate(
  operator: BinaryOperator,
  left: Value,
  right: Value,
  sign: string = operator,
): Value {
  if (left instanceof ProgramObject || right instanceof ProgramObject) {
    const special = operateOnObjects(operator, left, right)
    if (special !== undefined) return special
  }
  return calculate(RUNTIME, operator, [left, right], sign) as Value
}

function operateOnObjects(operator: BinaryOperator, left: Value, right: Value): Value | undefined {
  if (operator === '|' && isType(left) && isType(right)) {
    return new TypeForm('union', '|', [left, right])
  }
  if (operator === '/' && left instanceof ProgramPath && typeof right === 'string') {
    return new ProgramPath(`${left.text}/${right}`)
  }
  if (operator === '-' && left instanceof ProgramDate && right instanceof ProgramDate) {
    return new TimeDelta(left.at - right.at)
  }
  if (right instanceof TimeDelta && left instanceof ProgramDate) {
    const sign = operator === '-' ? -1 : 1
    const shift = left.hasTime ? right.milliseconds : right.days * 86_400_000
    return new ProgramDate(left.at + sign * shift, left.hasTime)
  }
  return undefined
}

/** Whether a value may be used in an annotation. */
const isType = (value: Value): boolean =>
  value === null ||
  value instanceof ProgramClass ||
  value instanceof BuiltinClass ||
  value instanceof TypeForm ||
  value instanceof ExceptionClass

/** Whether a value counts as an instance of a class, or of one of a tuple of classes. */
export function isInstance(value: Value, of: Value): boolean {
  if (of instanceof PythonTuple) return of.items.some(one => isInstance(value, one))
  if (of instanceof TypeForm && of.kind === 'union')
    return of.items.some(one => isInstance(value, one))
  if (of instanceof ProgramClass) return classOf(value)?.isWithin(of) ?? false
  if (of instanceof ExceptionClass) return value instanceof PythonError && isCaught(value, of)
  if (of instanceof BuiltinClass) return isInstanceOfBuiltin(value, of.name)
  if (of instanceof TypeForm) return isInstanceOfBuiltin(value, of.kind)
  throw typeError('isinstance() arg 2 must be a type, a tuple of types, or a union')
}

const classOf = (value: Value): ProgramClass | undefined =>
  value instanceof Instance || value instanceof EnumMember ? value.class : undefined

function isInstanceOfBuiltin(value: Value, name: string): boolean {
  switch (name) {
    case 'object':
      return true
    case 'int':
      return nameOf(value) === 'int' || typeof value === 'boolean'
    case 'str':
      return typeof unwrap(value) === 'string'
    case 'date':
      return value instanceof ProgramDate
    case 'function':
      return value instanceof ProgramFunction
    case 'type':
      return value instanceof ProgramClass || value instanceof BuiltinClass
    default:
      return value instanceof Opaque ? value.name === name : nameOf(value) === name
  }
}

const BASES: ReadonlyMap<string, readonly string[]> = new Map([
  ['KeyError', ['LookupError']],
  ['IndexError', ['LookupError']],
  ['JSONDecodeError', ['ValueError']],
  ['ValidationError', ['ValueError']],
  ['UnicodeDecodeError', ['ValueError']],
  ['ZeroDivisionError', ['ArithmeticError']],
  ['OverflowError', ['ArithmeticError']],
  ['RecursionError', ['RuntimeError']],
  ['NotImplementedError', ['RuntimeError']],
  ['FileNotFoundError', ['OSError']],
  ['UnboundLocalError', ['NameError']],
  ['IndentationError', ['SyntaxError']],
])

/** Whether an `except` of that class catches the error. */
export function isCaught(error: PythonError, of: ExceptionClass): boolean {
  if (of.name === 'Exception' || of.name === 'BaseException' || of.name === error.type) return true
  return BASES.get(error.type)?.includes(of.name) ?? false
}
