import { isOrdered } from '../operations.ts'
import type { Run } from '../run.ts'
import { spend } from '../run.ts'
import type { Value } from '../value.ts'
import type { Getter } from './attribute.ts'

/** Python's `sorted`: stable, by `<` on the keys, raising if keys have no order. */
export function sortValues(
  run: Run,
  items: readonly Value[],
  options: { readonly key: Getter; readonly reverse: boolean },
): Value[] {
  const { key, reverse } = options
  spend(run, items.length * 8)
  const keyed = items.map(item => ({ item, key: key(item) }))
  keyed.sort((left, right) => {
    spend(run, 16)
    const order = isOrdered(run, '<', [left.key, right.key])
      ? -1
      : isOrdered(run, '<', [right.key, left.key])
        ? 1
        : 0
    return reverse ? -order : order
  })
  return keyed.map(each => each.item)
}
