import {
  asNumber,
  PythonFloat,
  readInt,
  roundFloat,
  roundToInt,
  toDouble,
  toInt,
} from '@espalier/text/python'
import { evaluateArithmetic } from '../../tau/calculator/calculate.ts'
import { attributeOf, findAttribute, setAttribute } from './attributes.ts'
import { call } from './call.ts'
import { setOf } from './compile/expression.ts'
import { ProgramDate } from './dates.ts'
import { setItem, unpack } from './items.ts'
import { sorted } from './methods/list.ts'
import { readFloat } from './models/scalars.ts'
import { isInstance, isOrdered, isTrue, iterate, lengthOf, nameOf, operate } from './operators.ts'
import { repr, str } from './show.ts'
import {
  BuiltinClass,
  ClassMethod,
  type Dict,
  ExceptionClass,
  Instance,
  type Named,
  Native,
  Opaque,
  ProgramIterator,
  Property,
  PythonError,
  PythonTuple,
  plain,
  typeError,
  unwrap,
  type Value,
  valueError,
} from './values.ts'

function toFloat(value: Value = 0): PythonFloat {
  const known = unwrap(value)
  const number = asNumber(plain(known))
  if (number !== undefined) return new PythonFloat(toDouble(number))
  if (typeof known !== 'string') {
    throw typeError(`float() argument must be a string or a real number, not '${nameOf(value)}'`)
  }
  const read = readFloat(known)
  if (read === undefined) throw valueError(`could not convert string to float: ${repr(known)}`)
  return new PythonFloat(read)
}

const INT = /^[-+]?\d+(?:_\d+)*$/

function toWhole(value: Value = 0): Value {
  const known = unwrap(value)
  if (known instanceof PythonFloat) {
    if (Number.isFinite(known.value)) return toInt(BigInt(Math.trunc(known.value)))
    return roundToInt(known.value)
  }
  const number = asNumber(plain(known))
  if (number !== undefined) return number
  if (typeof known !== 'string') {
    throw typeError(
      `int() argument must be a string, a bytes-like object or a real number, not '${nameOf(value)}'`,
    )
  }
  const digits = known.trim()
  if (!INT.test(digits)) throw valueError(`invalid literal for int() with base 10: ${repr(known)}`)
  return readInt(digits.replaceAll('_', '').replace(/^\+/, ''))
}

function round(value: Value, digits: Value = null): Value {
  const number = asNumber(plain(unwrap(value)))
  if (number === undefined) throw typeError(`type ${nameOf(value)} doesn't define __round__ method`)
  if (!(number instanceof PythonFloat)) return number
  return digits === null
    ? roundToInt(number.value)
    : new PythonFloat(roundFloat(number.value, Number(digits)))
}

/** Python's `sum`; floats are added with a compensation, as since 3.12. */
function sum(items: Iterable<Value>, start: Value = 0): Value {
  let total = start
  let lost = 0
  for (const item of items) {
    if (total instanceof PythonFloat && item instanceof PythonFloat) {
      const [one, other] = [total.value, item.value]
      const next = one + other
      lost += Math.abs(one) >= Math.abs(other) ? one - next + other : other - next + one
      total = new PythonFloat(next)
    } else total = operate('+', total, item)
  }
  const isLost = lost !== 0 && Number.isFinite(lost) && total instanceof PythonFloat
  return isLost ? new PythonFloat((total as PythonFloat).value + lost) : total
}

function extreme(operator: '<' | '>', given: readonly Value[], named: Named): Value {
  const key = named.get('key') ?? null
  const items = given.length === 1 ? [...iterate(given[0] as Value)] : [...given]
  if (items.length === 0) {
    const preset = named.get('default')
    if (preset !== undefined) return preset
    throw valueError(`${operator === '<' ? 'min' : 'max'}() iterable argument is empty`)
  }
  const by = (item: Value): Value => (key === null ? item : call(key, [item]))
  return items.reduce((best, item) => (isOrdered(operator, by(item), by(best)) ? item : best))
}

function absolute(value: Value): Value {
  const number = asNumber(plain(value))
  if (number === undefined) throw typeError(`bad operand type for abs(): '${nameOf(value)}'`)
  if (number instanceof PythonFloat) return new PythonFloat(Math.abs(number.value))
  return typeof number === 'bigint' ? (number < 0n ? -number : number) : Math.abs(number)
}

function evaluate(source: Value): Value {
  const text = unwrap(source)
  if (typeof text !== 'string')
    throw typeError('eval() arg 1 must be a string, bytes or code object')
  const value = evaluateArithmetic(text)
  if (typeof value === 'bigint') return toInt(value)
  return typeof value === 'number' ? new PythonFloat(value) : new Opaque(value, new Map())
}

function getAttribute([object, name, preset]: readonly Value[]): Value {
  const text = requireName(name as Value)
  const found = findAttribute(object as Value, text)
  if (found !== undefined) return found
  return preset === undefined ? attributeOf(object as Value, text) : preset
}

function requireName(name: Value): string {
  const text = unwrap(name)
  if (typeof text !== 'string') {
    throw typeError(`attribute name must be string, not '${nameOf(name)}'`)
  }
  return text
}

function next(source: Value, preset?: Value): Value {
  if (!(source instanceof ProgramIterator))
    throw typeError(`'${nameOf(source)}' object is not an iterator`)
  const { done, value } = source.iterator.next()
  if (!done) return value
  if (preset !== undefined) return preset
  throw new PythonError('StopIteration', '')
}

function* zip(sources: readonly Value[]): Generator<Value> {
  const iterators = sources.map(source => iterate(source)[Symbol.iterator]())
  while (iterators.length > 0) {
    const items: Value[] = []
    for (const iterator of iterators) {
      const { done, value } = iterator.next()
      if (done) return
      items.push(value)
    }
    yield new PythonTuple(items)
  }
}

function* enumerate(source: Value, start: number): Generator<Value> {
  let index = start
  for (const item of iterate(source)) yield new PythonTuple([index++, item])
}

function range(given: readonly Value[]): Value[] {
  const [from, to, step = 1] = (given.length === 1 ? [0, given[0]] : given).map(Number) as number[]
  const numbers: Value[] = []
  for (
    let at = from as number;
    (step as number) > 0 ? at < (to as number) : at > (to as number);
    at += step as number
  ) {
    numbers.push(at)
  }
  return numbers
}

function makeDict(given: readonly Value[], named: Named): Dict {
  const dict: Dict = new Map()
  const from = given[0]
  if (from instanceof Map) for (const [key, value] of from) dict.set(key, value)
  else if (from !== undefined) {
    for (const pair of iterate(from)) {
      const [key, value] = unpack(pair, 2) as [Value, Value]
      setItem(dict, key, value)
    }
  }
  for (const [key, value] of named) dict.set(key, value)
  return dict
}

const itemsOf = (value: Value | undefined): Iterable<Value> =>
  value === undefined ? [] : iterate(value)

/** Python's own classes. */
export const classes: Readonly<Record<string, BuiltinClass>> = {
  str: new BuiltinClass('str', ([value = '']) => str(value)),
  int: new BuiltinClass('int', ([value]) => toWhole(value)),
  float: new BuiltinClass('float', ([value]) => toFloat(value)),
  bool: new BuiltinClass('bool', ([value = false]) => isTrue(value)),
  list: new BuiltinClass('list', ([items]) => [...itemsOf(items)]),
  tuple: new BuiltinClass('tuple', ([items]) => new PythonTuple([...itemsOf(items)])),
  set: new BuiltinClass('set', ([items]) => setOf(itemsOf(items))),
  dict: new BuiltinClass('dict', makeDict),
  object: new BuiltinClass('object', () => new Opaque('object', new Map())),
  type: new BuiltinClass('type', ([value]) => typeOf(value as Value)),
}

function typeOf(value: Value): Value {
  if (value instanceof Instance) return value.class
  const name = value instanceof ProgramDate ? value.type : nameOf(value)
  return classes[name] ?? new BuiltinClass(name, () => null)
}

type Run = (given: readonly Value[], named: Named) => Value

const functions: Readonly<Record<string, Run>> = {
  len: ([value]) => lengthOf(value as Value),
  isinstance: ([value, of]) => isInstance(value as Value, of as Value),
  hasattr: ([object, name]) =>
    findAttribute(object as Value, requireName(name as Value)) !== undefined,
  getattr: given => getAttribute(given),
  setattr: ([object, name, value]) => {
    setAttribute(object as Value, requireName(name as Value), value as Value)
    return null
  },
  all: ([items]) => {
    for (const item of iterate(items as Value)) if (!isTrue(item)) return false
    return true
  },
  any: ([items]) => {
    for (const item of iterate(items as Value)) if (isTrue(item)) return true
    return false
  },
  round: ([value, digits]) => round(value as Value, digits),
  sorted: ([items], named) => sorted(iterate(items as Value), named),
  reversed: ([items]) => [...iterate(items as Value)].reverse(),
  enumerate: ([source, start = 0]) =>
    new ProgramIterator(enumerate(source as Value, Number(start))),
  zip: given => new ProgramIterator(zip(given)),
  range: given => range(given),
  sum: ([items, start]) => sum(iterate(items as Value), start),
  min: (given, named) => extreme('<', given, named),
  max: (given, named) => extreme('>', given, named),
  abs: ([value]) => absolute(value as Value),
  next: ([source, preset]) => next(source as Value, preset),
  iter: ([source]) => new ProgramIterator(iterate(source as Value)[Symbol.iterator]()),
  repr: ([value]) => repr(value as Value),
  callable: ([value]) => value instanceof Native,
  eval: ([source]) => evaluate(source as Value),
  print: () => null,
  property: ([getter]) => new Property(getter as Value),
  classmethod: ([called]) => new ClassMethod(called as Value, true),
  staticmethod: ([called]) => new ClassMethod(called as Value, false),
}

const EXCEPTIONS =
  'Exception ValueError TypeError KeyError IndexError AttributeError RuntimeError AssertionError NotImplementedError ZeroDivisionError OSError FileNotFoundError StopIteration NameError ImportError LookupError ArithmeticError OverflowError'

/** Everything a module knows without importing it. */
export const builtinNames: ReadonlyMap<string, Value> = new Map<string, Value>([
  ...Object.entries(classes),
  ...Object.entries(functions).map(([name, run]) => [name, new Native(name, run)] as const),
  ...EXCEPTIONS.split(' ').map(name => [name, new ExceptionClass(name, [])] as const),
])
