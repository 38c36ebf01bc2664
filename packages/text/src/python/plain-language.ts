import { compare, equals, findKey, requireHashable, typeName } from './compare.ts'
import { PythonError } from './error.ts'
import { typeError } from './methods/arguments.ts'
import { methodsOf } from './methods/methods.ts'
import { sequenceItems } from './operators.ts'
import { repr, str } from './repr.ts'
import type { Language, Runtime } from './runtime.ts'
import { countCharacters } from './text/text.ts'
import { PythonSet, PythonTuple, type PythonValue, type Value } from './value.ts'

// Every value that meets this language is plain data.
const data = (value: Value): PythonValue => value as PythonValue

/** Python's iteration over plain data: a text by its characters, a dict by its keys. */
export function iterateData(value: Value): Iterable<Value> {
  if (typeof value === 'string') return value
  if (value instanceof Map) return value.keys()
  if (value instanceof PythonSet) return value.items
  return sequenceItems(value) ?? typeError(`'${typeName(value)}' object is not iterable`)
}

/** Python's `len` of plain data. */
export function lengthOfData(value: Value): number {
  if (typeof value === 'string') return countCharacters(value)
  if (value instanceof Map) return value.size
  if (value instanceof PythonSet) return value.items.length
  return (
    sequenceItems(value)?.length ?? typeError(`object of type '${typeName(value)}' has no len()`)
  )
}

function missing(value: Value, name: string): never {
  throw new PythonError('AttributeError', `'${typeName(value)}' object has no attribute '${name}'`)
}

function itemOf(value: Value, key: string | number): Value {
  if (value instanceof Map) {
    const known = findKey(value, key as Value)
    if (known === undefined) throw new PythonError('KeyError', repr(key))
    return value.get(known) as Value
  }
  const items = typeof value === 'string' ? [...value] : sequenceItems(value)
  if (items === undefined) return typeError(`'${typeName(value)}' object is not subscriptable`)
  if (typeof key === 'string')
    return typeError(`${typeName(value)} indices must be integers, not 'str'`)
  const item = items[key]
  if (item === undefined) {
    throw new PythonError('IndexError', `${typeName(value)} index out of range`)
  }
  return item
}

const PLAIN_LANGUAGE: Language = {
  renew: () => {},
  tooLong: () => {
    throw new PythonError('MemoryError', '')
  },
  refuse: () => {},
  iterate: (_, value) => iterateData(value),
  str: (_, value) => str(data(value)),
  repr: (_, value) => repr(data(value)),
  isEqual: (_, left, right) => equals(left, right),
  isLess: (_, left, right) => compare('<', left, right),
  format: () => undefined,
  attribute: missing,
  item: itemOf,
  find: (dict, key) => findKey<Value>(dict, requireHashable(key)),
  view: (dict, part) => {
    if (part === 'keys') return [...dict.keys()]
    if (part === 'values') return [...dict.values()]
    return Array.from(dict, pair => new PythonTuple<Value>(pair))
  },
  copy: dict => new Map(dict),
  touch: () => {},
  call: () => typeError('Plain data has no functions to call.'),
}

/** Python over plain data, whose work is not counted; texts end at a hundred million characters. */
export const PLAIN: Runtime = {
  steps: Number.POSITIVE_INFINITY,
  limits: { characters: 100_000_000 },
  language: PLAIN_LANGUAGE,
}

/** What is passed to a method of Python. */
export interface MethodArguments {
  readonly positional?: readonly PythonValue[]
  readonly named?: Readonly<Record<string, PythonValue>>
}

/** Calls a method of one of Python's own classes on plain data, such as `'a b'.split()`. */
export function callMethod(
  value: PythonValue,
  name: string,
  { positional = [], named }: MethodArguments = {},
): PythonValue {
  const method = methodsOf(value)?.get(name) ?? missing(value, name)
  const input = { positional, named: named && new Map(Object.entries(named)) }
  return data(method.call(PLAIN, value, input))
}
