import { storeItem } from '../python/compare.ts'
import { PythonError } from '../python/error.ts'
import type { PythonDict, PythonKey, PythonValue } from '../python/value.ts'
import { PythonTuple } from '../python/value.ts'
import { keyValue, keyValues, rememberKey } from './foreign.ts'
import { isOrdered, toKey } from './operations.ts'
import type { Run } from './run.ts'
import { reprValue } from './show.ts'
import type { Behaviour, Dict, Value } from './value.ts'
import { isText, TemplateObject, typeOf, Undefined } from './value.ts'

/** Stores an item under a key of any hashable kind. */
export function setItem(dict: Dict, key: Value, value: Value): void {
  if (typeof key === 'string') {
    dict.set(key, value)
    return
  }
  storeItem(dict as PythonDict, toKey(key), value as PythonValue)
  if (isText(key)) rememberKey(dict, key)
}

/** A dict from its items. */
export function fromEntries(entries: Iterable<readonly [Value, Value]>): Dict {
  const dict: Dict = new Map()
  for (const [key, value] of entries) setItem(dict, key, value)
  return dict
}

/** A key of the dict with its value. */
const itemPair = (dict: Dict, key: PythonKey): [Value, Value] => [
  keyValue(dict, key),
  dict.get(key) as Value,
]

/** The pairs of a dict, as tuples. */
export function itemTuples(dict: Dict): Value[] {
  const keys = keyValues(dict)
  const tuples: Value[] = []
  for (const value of dict.values()) {
    tuples.push(new PythonTuple([keys[tuples.length] as Value, value]))
  }
  return tuples
}

const view = (part: string, items: (dict: Dict) => readonly Value[]): Behaviour => ({
  items: state => items(state as Dict),
  length: state => (state as Dict).size,
  show: state => `dict_${part}(${reprValue(items(state as Dict))})`,
})

const VIEWS = {
  keys: view('keys', keyValues),
  values: view('values', dict => [...dict.values()]),
  items: view('items', itemTuples),
}

/** What `keys()`, `values()` and `items()` of a dict give. */
export const dictView = (dict: Dict, part: keyof typeof VIEWS): TemplateObject =>
  new TemplateObject(`dict_${part}`, VIEWS[part], dict)

/** The pairs of a dict sorted by key if the keys have an order, else as they are. */
export function sortedEntries(run: Run, dict: Dict): [Value, Value][] {
  const entries = [...dict.keys()].map(key => itemPair(dict, key))
  try {
    return entries.sort(([left], [right]) =>
      isOrdered(run, '<', [left, right]) ? -1 : isOrdered(run, '<', [right, left]) ? 1 : 0,
    )
  } catch {
    return entries
  }
}

/** A value that must be a dict, for what reads its items. */
export function requireDict(value: Value): Dict {
  if (value instanceof Map) return value
  if (value instanceof Undefined) return value.raise()
  throw new PythonError('AttributeError', `'${typeOf(value)}' object has no attribute 'items'`)
}
