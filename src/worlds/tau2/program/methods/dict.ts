import { setItem, unpack } from '../items.ts'
import { iterate, keyIn } from '../operators.ts'
import { repr } from '../show.ts'
import { type Dict, DictView, type Named, orElse, PythonError, type Value } from '../values.ts'
import { touch } from '../versions.ts'
import { defineMethods } from './define.ts'

const dictOf = (value: Value | undefined): Dict => value as Dict

function find(dict: Dict, key: Value): Value | undefined {
  const known = keyIn(dict, key)
  return known === undefined ? undefined : dict.get(known)
}

function update(given: readonly Value[], named: Named): null {
  const dict = dictOf(given[0])
  const from = given[1]
  if (from instanceof Map) for (const [key, value] of from) setItem(dict, key, value)
  else if (from !== undefined) {
    for (const pair of iterate(from)) {
      const [key, value] = unpack(pair, 2) as [Value, Value]
      setItem(dict, key, value)
    }
  }
  for (const [key, value] of named) setItem(dict, key, value)
  return null
}

function pop(given: readonly Value[]): Value {
  const dict = dictOf(given[0])
  const key = keyIn(dict, given[1] as Value)
  if (key === undefined) {
    if (given[2] !== undefined) return given[2]
    throw new PythonError('KeyError', repr(given[1] as Value))
  }
  const value = dict.get(key) as Value
  touch(dict)
  dict.delete(key)
  return value
}

/** The methods of dicts. */
export const dictMethods = defineMethods({
  get: ([dict, key, preset]) => orElse(find(dictOf(dict), key as Value), orElse(preset, null)),
  items: ([dict]) => new DictView(dictOf(dict), 'items'),
  keys: ([dict]) => new DictView(dictOf(dict), 'keys'),
  values: ([dict]) => new DictView(dictOf(dict), 'values'),
  update,
  pop,
  setdefault: ([dict, key, preset]) => {
    const found = find(dictOf(dict), key as Value)
    if (found !== undefined) return found
    setItem(dict as Value, key as Value, preset ?? null)
    return preset ?? null
  },
  copy: ([dict]) => new Map(dictOf(dict)),
  clear: ([dict]) => {
    touch(dictOf(dict))
    dictOf(dict).clear()
    return null
  },
})
