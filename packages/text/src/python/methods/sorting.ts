import { asNumber } from '../compare.ts'
import type { Runtime } from '../runtime.ts'
import { PythonFloat, type Value } from '../value.ts'
import { typeError } from './arguments.ts'

/** How a list is sorted: by what a function makes of its items, and in which direction. */
export interface SortOptions {
  readonly key?: Value | undefined
  readonly reverse?: Value | undefined
}

/** Python's `sorted`: stable, by `<` alone. */
export function sortedItems(
  run: Runtime,
  items: Iterable<Value>,
  { key = null, reverse = false }: SortOptions,
): Value[] {
  const { language } = run
  const backwards = asNumber(reverse)
  if (backwards === undefined || backwards instanceof PythonFloat)
    typeError('reverse must be an int or a bool')
  const sign = backwards === 0 ? 1 : -1
  const keyed = Array.from(items, item => ({
    item,
    by: key === null ? item : language.call(key, item),
  }))
  keyed.sort((left, right) => {
    if (language.isLess(run, left.by, right.by)) return -sign
    return language.isLess(run, right.by, left.by) ? sign : 0
  })
  return keyed.map(({ item }) => item)
}
