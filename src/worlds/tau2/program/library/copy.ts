import { type Dict, Instance, Module, Native, PythonTuple, type Value } from '../values.ts'

/** Python's `copy.deepcopy`: whatever can change is copied, once each. */
export function copyDeeply(value: Value, seen: Map<Value, Value> = new Map()): Value {
  if (typeof value !== 'object' || value === null) return value
  const before = seen.get(value)
  if (before !== undefined) return before
  if (Array.isArray(value)) {
    const list: Value[] = []
    seen.set(value, list)
    for (const item of value) list.push(copyDeeply(item, seen))
    return list
  }
  if (value instanceof Map) {
    const dict: Dict = new Map()
    seen.set(value, dict)
    for (const [key, item] of value) dict.set(key, copyDeeply(item, seen))
    return dict
  }
  if (value instanceof PythonTuple)
    return new PythonTuple(value.items.map(item => copyDeeply(item, seen)))
  return value instanceof Instance ? copyInstance(value, seen) : value
}

function copyInstance(value: Instance, seen: Map<Value, Value>): Instance {
  const copy = new Instance(value.class)
  seen.set(value, copy)
  for (const [name, item] of value.fields) copy.fields.set(name, copyDeeply(item, seen))
  return copy
}

/** Python's `copy`. */
export const copyModule = new Module(
  'copy',
  new Map<string, Value>([
    ['deepcopy', new Native('deepcopy', ([value]) => copyDeeply(value as Value))],
  ]),
)
