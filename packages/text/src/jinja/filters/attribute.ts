import { plain } from '../../python/text/text.ts'
import { getItem } from '../access.ts'
import type { Value } from '../value.ts'
import { isText, Undefined } from '../value.ts'

/** Reads something out of an item, as the `attribute` argument of filters says. */
export type Getter = (item: Value) => Value

/** How a getter treats what it found. */
export interface GetterOptions {
  readonly change?: (value: Value) => Value
  readonly fallback?: Value | undefined
}

/** Strings without their case, everything else as it is. */
export const ignoreCase = (value: Value): Value =>
  isText(value) ? plain(value).toLowerCase() : value

type Part = string | number | Value

function attributeParts(attribute: Value | undefined): Part[] {
  if (attribute === undefined || attribute === null) return []
  if (!isText(attribute)) return [attribute]
  return plain(attribute)
    .split('.')
    .map(part => (/^[0-9]+$/.test(part) ? Number(part) : part))
}

/** A getter for an attribute such as `'function.name'`; without one it gives the item itself. */
export function makeGetter(attribute: Value | undefined, options: GetterOptions = {}): Getter {
  const parts = attributeParts(attribute)
  const { change, fallback } = options
  return item => {
    let value = item
    for (const part of parts) {
      value = getItem(value, part)
      if (fallback !== undefined && fallback !== null && value instanceof Undefined)
        value = fallback
    }
    return change ? change(value) : value
  }
}

/** A getter for several attributes separated by commas, which gives the list of what they hold. */
export function makeListGetter(attribute: Value | undefined, options: GetterOptions = {}): Getter {
  const list = isText(attribute) ? plain(attribute).split(',') : [attribute]
  const getters = list.map(each => makeGetter(each, options))
  return item => getters.map(get => get(item))
}
