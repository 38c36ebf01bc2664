import { FORMAT_METHODS } from '../format/fields.ts'
import type { Method } from '../signature.ts'
import { PythonFloat, PythonSet, PythonText, PythonTuple, type Value } from '../value.ts'
import { DICT_METHODS, LIST_METHODS, TUPLE_METHODS } from './container.ts'
import { FLOAT_METHODS, INT_METHODS } from './number.ts'
import { SPLIT_METHODS } from './split.ts'
import { TEXT_METHODS } from './text.ts'

/** The methods of `str`. */
const STR_METHODS: ReadonlyMap<string, Method> = new Map([
  ...SPLIT_METHODS,
  ...TEXT_METHODS,
  ...FORMAT_METHODS,
])

/** The methods of Python's own classes, by the name of the class. */
export const METHODS: ReadonlyMap<string, ReadonlyMap<string, Method>> = new Map([
  ['str', STR_METHODS],
  ['list', LIST_METHODS],
  ['dict', DICT_METHODS],
  ['tuple', TUPLE_METHODS],
  ['int', INT_METHODS],
  ['bool', INT_METHODS],
  ['float', FLOAT_METHODS],
])

/** Finds the method of this name that a value has. */
export function methodNamed(name: string): (value: Value) => Method | undefined {
  const ofText = STR_METHODS.get(name)
  const ofDict = DICT_METHODS.get(name)
  return value => {
    if (typeof value === 'string') return ofText
    return value instanceof Map ? ofDict : methodsOf(value)?.get(name)
  }
}

/** The methods of a value's class, if it is a class with methods. */
export function methodsOf(value: Value): ReadonlyMap<string, Method> | undefined {
  if (typeof value === 'string') return STR_METHODS
  if (typeof value !== 'object') {
    return typeof value === 'number' && !Number.isInteger(value) ? FLOAT_METHODS : INT_METHODS
  }
  if (value === null || value instanceof PythonSet) return undefined
  if (value instanceof Map) return DICT_METHODS
  if (Array.isArray(value)) return LIST_METHODS
  if (value instanceof PythonText) return STR_METHODS
  if (value instanceof PythonFloat) return FLOAT_METHODS
  return value instanceof PythonTuple ? TUPLE_METHODS : undefined
}
