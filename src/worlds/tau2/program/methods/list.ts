import { call } from '../call.ts'
import { isEqual, isOrdered, isTrue, iterate, nameOf } from '../operators.ts'
import { type Named, PythonError, typeError, type Value, valueError } from '../values.ts'
import { touch } from '../versions.ts'
import { defineMethods, requireOne } from './define.ts'

const listOf = (value: Value | undefined): Value[] => value as Value[]

function change(given: readonly Value[]): Value[] {
  const list = listOf(given[0])
  touch(list)
  return list
}

/** Python's `sorted`: stable, by `<` alone. */
export function sorted(items: Iterable<Value>, named: Named): Value[] {
  const key = named.get('key') ?? null
  const sign = isTrue(named.get('reverse') ?? false) ? -1 : 1
  const keyed = Array.from(items, item => ({ item, by: key === null ? item : call(key, [item]) }))
  keyed.sort((left, right) => {
    if (isOrdered('<', left.by, right.by)) return -sign
    return isOrdered('<', right.by, left.by) ? sign : 0
  })
  return keyed.map(({ item }) => item)
}

function pop(given: readonly Value[]): Value {
  const list = listOf(given[0])
  const index = given[1] === undefined ? -1 : given[1]
  if (typeof index !== 'number') {
    throw typeError(`'${nameOf(index)}' object cannot be interpreted as an integer`)
  }
  if (list.length === 0) throw new PythonError('IndexError', 'pop from empty list')
  const at = index < 0 ? index + list.length : index
  if (at < 0 || at >= list.length) throw new PythonError('IndexError', 'pop index out of range')
  touch(list)
  return list.splice(at, 1)[0] as Value
}

function remove(given: readonly Value[]): null {
  const list = listOf(given[0])
  const at = list.findIndex(item => isEqual(item, given[1] as Value))
  if (at < 0) throw valueError('list.remove(x): x not in list')
  touch(list)
  list.splice(at, 1)
  return null
}

function extend(given: readonly Value[]): null {
  const items = [...iterate(given[1] as Value)]
  change(given).push(...items)
  return null
}

function indexOf(given: readonly Value[]): number {
  const at = listOf(given[0]).findIndex(item => isEqual(item, given[1] as Value))
  if (at < 0) throw valueError(`${String(given[1])} is not in list`)
  return at
}

/** The methods of lists. */
export const listMethods = defineMethods({
  append: given => {
    const item = requireOne(given, 'list.append')
    change(given).push(item)
    return null
  },
  extend,
  insert: given => {
    change(given).splice(Number(given[1]), 0, given[2] as Value)
    return null
  },
  pop,
  remove,
  count: ([list, item]) => listOf(list).filter(one => isEqual(one, item as Value)).length,
  index: indexOf,
  sort: (given, named) => {
    const list = change(given)
    list.splice(0, list.length, ...sorted([...list], named))
    return null
  },
  reverse: given => {
    change(given).reverse()
    return null
  },
  copy: ([list]) => [...listOf(list)],
  clear: given => {
    change(given).length = 0
    return null
  },
})
