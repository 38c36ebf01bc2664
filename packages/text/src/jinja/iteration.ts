import { countCharacters } from '../python/text/text.ts'
import { PythonSet } from '../python/value.ts'
import { keyValues } from './foreign.ts'
import type { Run } from './run.ts'
import { spend } from './run.ts'
import { TemplateText } from './template-text.ts'
import { characters } from './text.ts'
import type { Behaviour, Value } from './value.ts'
import {
  isText,
  sequenceItems,
  TemplateObject,
  typeError,
  typeOf,
  Undefined,
  valueError,
} from './value.ts'

/** The items of an iterable that has them all in memory, else `undefined`. */
function itemsAtHand(value: Value): readonly Value[] | undefined {
  if (typeof value !== 'object' || value === null) return undefined
  if (Array.isArray(value)) return value
  if (value instanceof Map) return keyValues(value)
  if (value instanceof PythonSet) return value.items as readonly Value[]
  if (value instanceof Undefined) return []
  if (value instanceof TemplateObject) return value.behaviour.items?.(value.state)
  return sequenceItems(value)
}

/** Whether Python could iterate over the value. */
export const isIterable = (value: Value): boolean =>
  isText(value) ||
  (value instanceof TemplateObject
    ? (value.behaviour.items ?? value.behaviour.iterate) !== undefined
    : itemsAtHand(value) !== undefined)

/** Python's `iter`: an array if all items are in memory, else an iterator. */
export function toIterable(value: Value): readonly Value[] | Iterator<Value> {
  if (Array.isArray(value)) return value
  if (typeof value === 'string') return value[Symbol.iterator]()
  if (value instanceof TemplateText) return characters(value).values()
  const items = itemsAtHand(value)
  if (items) return items
  const iterator =
    value instanceof TemplateObject ? value.behaviour.iterate?.(value.state) : undefined
  return iterator ?? typeError(`'${typeOf(value)}' object is not iterable`)
}

/** All items of an iterable, as Python's `list` collects them. */
export function toList(run: Run, value: Value): readonly Value[] {
  const iterable = toIterable(value)
  return Array.isArray(iterable) ? iterable : [...walk(run, value)]
}

/** Walks an iterable once, making items only as they are asked for. */
export function* walk(run: Run, value: Value): Generator<Value> {
  const iterable = toIterable(value)
  const iterator = Array.isArray(iterable) ? iterable.values() : (iterable as Iterator<Value>)
  for (let step = iterator.next(); !step.done; step = iterator.next()) {
    spend(run, 2)
    yield step.value
  }
}

const ITERATOR: Behaviour = { iterate: state => state as Iterator<Value> }

/** An iterator object of a template: it can be walked once. */
export function iteratorObject(iterator: Iterator<Value>, type = 'generator'): TemplateObject {
  return new TemplateObject(type, ITERATOR, iterator)
}

/** Python's `len`, or `undefined` for what has none. */
export function lengthOf(value: Value): number | undefined {
  if (typeof value === 'string') return countCharacters(value)
  if (typeof value !== 'object' || value === null) return undefined
  if (Array.isArray(value)) return value.length
  if (value instanceof Map) return value.size
  if (value instanceof TemplateText) return countCharacters(value.text)
  if (value instanceof PythonSet) return value.items.length
  if (value instanceof Undefined) return 0
  if (value instanceof TemplateObject) return value.behaviour.length?.(value.state)
  return sequenceItems(value)?.length
}

/** Python's `len`. */
export const requireLength = (value: Value): number =>
  lengthOf(value) ?? typeError(`object of type '${typeOf(value)}' has no len()`)

/** Unpacks a value into exactly so many items. */
export function unpack(run: Run, value: Value, count: number): readonly Value[] {
  if (!isIterable(value)) typeError(`cannot unpack non-iterable ${typeOf(value)} object`)
  const items = toList(run, value)
  if (items.length < count) {
    valueError(`not enough values to unpack (expected ${count}, got ${items.length})`)
  }
  if (items.length > count) valueError(`too many values to unpack (expected ${count})`)
  return items
}
