import {
  absolute,
  addPairs,
  encodeAsciiRepr,
  evaluateArithmetic,
  PythonFloat,
  readRange,
  requireInt,
  round,
  sortedItems,
  toFloat,
  toInt,
  toWhole,
  UnsupportedError,
} from '@espalier/text/python'
import { attributeOf, findAttribute, setAttribute } from './attributes.ts'
import { call } from './call.ts'
import { setOf } from './compile/expression.ts'
import { ProgramDate } from './dates.ts'
import { format } from './format.ts'
import { ProgramIterator, ProgramRange } from './iterables.ts'
import { isInstance, isOrdered, isTrue, iterate, lengthOf, nameOf, operate } from './operators.ts'
import { RUNTIME } from './runtime.ts'
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
  orElse,
  Property,
  PythonError,
  PythonTuple,
  typeError,
  unwrap,
  type Value,
  valueError,
} from './values.ts'

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

function makeDict(given: readonly Value[], named: Named): Dict {
  const dict: Dict = new Map()
  addPairs(RUNTIME, dict, given[0])
  for (const [key, value] of named) dict.set(key, value)
  return dict
}

function* mapped(called: Value, sources: readonly Value[]): Generator<Value> {
  for (const items of zip(sources)) yield call(called, (items as PythonTuple<Value>).items)
}

function* filtered(called: Value, source: Value): Generator<Value> {
  for (const item of iterate(source)) {
    if (isTrue(called === null ? item : call(called, [item]))) yield item
  }
}

function character(code: number): string {
  if (code < 0 || code > 0x10ffff) throw valueError('chr() arg not in range(0x110000)')
  return String.fromCodePoint(code)
}

function ordinal(value: Value): number {
  const text = unwrap(value)
  if (typeof text !== 'string')
    throw typeError(`ord() expected string of length 1, but ${nameOf(value)} found`)
  const [first = '', ...others] = text
  if (first === '' || others.length > 0) {
    throw typeError(`ord() expected a character, but string of length ${lengthOf(text)} found`)
  }
  return first.codePointAt(0) as number
}

const itemsOf = (value: Value | undefined): Iterable<Value> =>
  value === undefined ? [] : iterate(value)

/** Python's own classes. */
export const classes: Readonly<Record<string, BuiltinClass>> = {
  str: new BuiltinClass('str', ([value = '']) => str(value)),
  int: new BuiltinClass('int', ([value, base], named) =>
    toWhole(value, orElse(base, named.get('base'))),
  ),
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
  round: ([value, digits], named) =>
    round(
      orElse(value, named.get('number')) ?? null,
      orElse(digits, named.get('ndigits')),
    ) as Value,
  sorted: ([items], named) =>
    sortedItems(RUNTIME, iterate(items as Value), {
      key: named.get('key'),
      reverse: named.get('reverse'),
    }) as Value[],
  reversed: ([items]) => new ProgramIterator([...iterate(items as Value)].reverse().values()),
  enumerate: ([source, start], named) =>
    new ProgramIterator(
      enumerate(source as Value, requireInt(orElse(start, named.get('start')), 0)),
    ),
  map: ([called, ...sources]) => new ProgramIterator(mapped(called as Value, sources)),
  filter: ([called, source]) => new ProgramIterator(filtered(called as Value, source as Value)),
  zip: given => new ProgramIterator(zip(given)),
  range: given => new ProgramRange(readRange(given)),
  sum: ([items, start]) => sum(iterate(items as Value), start),
  min: (given, named) => extreme('<', given, named),
  max: (given, named) => extreme('>', given, named),
  abs: ([value]) => absolute(value as Value) as Value,
  divmod: ([left, right]) =>
    new PythonTuple([
      operate('//', left as Value, right as Value, 'divmod()'),
      operate('%', left as Value, right as Value, 'divmod()'),
    ]),
  pow: ([base, exponent, modulus]) => {
    if (modulus !== undefined) throw new UnsupportedError('A power with a modulus')
    return operate('**', base as Value, exponent as Value)
  },
  ascii: ([value]) => encodeAsciiRepr(repr(value as Value)),
  format: ([value, specification = '']) => format(value as Value, specification as string),
  chr: ([code]) => character(requireInt(code, 0)),
  ord: ([text]) => ordinal(text as Value),
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
