import { PythonError } from '../../python/error.ts'
import { requireInt, requireText } from '../../python/methods/arguments.ts'
import { plain, sliceText } from '../../python/text/text.ts'
import { findAttribute, getSlice, groupTuple } from '../access.ts'
import { itemTuples, requireDict, setItem } from '../dict.ts'
import {
  isIterable,
  iteratorObject,
  requireLength,
  toIterable,
  toList,
  walk,
} from '../iteration.ts'
import { add, isEqual, isOrdered, isTrue } from '../operations.ts'
import type { Run } from '../run.ts'
import { spend } from '../run.ts'
import type { Method, MethodBody } from '../signature.ts'
import { method, signature } from '../signature.ts'
import type { Dict, Text, Value } from '../value.ts'
import {
  isText,
  sequenceItems,
  TemplateObject,
  typeError,
  typeOf,
  Undefined,
  undefinedMember,
} from '../value.ts'
import type { Getter } from './attribute.ts'
import { ignoreCase, makeGetter, makeListGetter } from './attribute.ts'
import { sortValues } from './sorting.ts'

const empty = (message: string): Undefined => new Undefined(() => message)

const first: MethodBody<Value> = value => {
  const source = toIterable(value)
  const item = Array.isArray(source)
    ? (source as readonly Value[])[0]
    : (source as Iterator<Value>).next().value
  return item === undefined ? empty('No first item, sequence was empty.') : item
}

const last: MethodBody<Value> = (value, _, run) => {
  const item = isText(value) ? lastCharacter(value) : reversible(run, value).at(-1)
  return item === undefined ? empty('No last item, sequence was empty.') : item
}

function lastCharacter(text: Text): Text | undefined {
  const source = plain(text)
  const size = /[\ud800-\udbff][\udc00-\udfff]$/.test(source.slice(-2)) ? 2 : 1
  return source === '' ? undefined : sliceText(text, source.length - size, source.length)
}

/** The items of what Python can walk backwards; a generator cannot. */
function reversible(run: Run, value: Value): readonly Value[] {
  if (value instanceof TemplateObject && value.behaviour.length === undefined) {
    typeError(`'${typeOf(value)}' object is not reversible`)
  }
  return toList(run, value)
}

const reverse: MethodBody<Value> = (value, _, run) => {
  if (isText(value)) return getSlice(run, value, [null, null, -1])
  if (!isIterable(value)) throw new PythonError('FilterArgumentError', 'argument must be iterable')
  const items = [...toList(run, value)].reverse()
  if (sequenceItems(value)) return iteratorObject(items.values(), 'list_reverseiterator')
  return value instanceof Map ? iteratorObject(items.values(), 'dict_reversekeyiterator') : items
}

const list: MethodBody<Value> = (value, _, run) => {
  const items = [...toList(run, value)]
  spend(run, items.length)
  return items
}

const dictsort: MethodBody<Value> = (value, values, run) => {
  const [caseSensitive = false, by = 'key', reversed = false] = values
  const position = by === 'key' ? 0 : by === 'value' ? 1 : undefined
  if (position === undefined) {
    throw new PythonError('FilterArgumentError', 'You can only sort by either "key" or "value"')
  }
  const change = isTrue(caseSensitive) ? undefined : ignoreCase
  return sortValues(run, itemTuples(requireDict(value)), {
    key: makeGetter(position, change ? { change } : {}),
    reverse: isTrue(reversed),
  })
}

const foldCase = (caseSensitive: Value | undefined): { change: (value: Value) => Value } => ({
  change: caseSensitive !== undefined && isTrue(caseSensitive) ? value => value : ignoreCase,
})

const sort: MethodBody<Value> = (value, [reversed = false, caseSensitive, attribute], run) =>
  sortValues(run, toList(run, value), {
    key: makeListGetter(attribute, foldCase(caseSensitive)),
    reverse: isTrue(reversed),
  })

const unique: MethodBody<Value> = (value, [caseSensitive, attribute], run) => {
  const get = makeGetter(attribute, foldCase(caseSensitive))
  return iteratorObject(distinct(run, value, get))
}

function* distinct(run: Run, value: Value, get: Getter): Generator<Value> {
  const seen: Dict = new Map()
  let hasUndefined = false
  for (const item of walk(run, value)) {
    const key = get(item)
    // All undefined values are one to Python, though no dict here has them as keys.
    if (key instanceof Undefined) {
      if (!hasUndefined) yield item
      hasUndefined = true
      continue
    }
    spend(run, typeof key === 'string' ? 2 : seen.size)
    const before = seen.size
    setItem(seen, key, true)
    if (seen.size > before) yield item
  }
}

const extreme =
  (operator: '<' | '>'): MethodBody<Value> =>
  (value, [caseSensitive, attribute], run) => {
    const get = makeGetter(attribute, foldCase(caseSensitive))
    let best: { item: Value; key: Value } | undefined
    for (const item of walk(run, value)) {
      const key = get(item)
      if (!best || isOrdered(run, operator, [key, best.key])) best = { item, key }
    }
    return best ? best.item : empty('No aggregated item, sequence was empty.')
  }

const groupby: MethodBody<Value> = (value, [attribute, fallback, caseSensitive], run) => {
  const get = makeGetter(attribute, { ...foldCase(caseSensitive), fallback })
  const sorted = sortValues(run, toList(run, value), { key: get, reverse: false })
  const groups: { key: Value; items: Value[] }[] = []
  for (const item of sorted) {
    const key = get(item)
    const group = groups.at(-1)
    if (group && isEqual(run, group.key, key)) group.items.push(item)
    else groups.push({ key, items: [item] })
  }
  const original = makeGetter(attribute, { fallback })
  return groups.map(group => groupTuple(original(group.items[0] as Value), group.items))
}

const sum: MethodBody<Value> = (value, [attribute, start = 0], run) => {
  if (isText(start)) typeError("sum() can't sum strings [use ''.join(seq) instead]")
  const get = makeGetter(attribute)
  let total: Value = start
  for (const item of walk(run, value)) total = add(run, total, get(item))
  return total
}

const batch: MethodBody<Value> = (value, [linecount, fill = null], run) =>
  iteratorObject(batches(run, value, { size: requireInt(linecount, 1), fill }))

function* batches(
  run: Run,
  value: Value,
  { size, fill }: { readonly size: number; readonly fill: Value },
): Generator<Value> {
  let row: Value[] = []
  for (const item of walk(run, value)) {
    if (row.length === size) {
      yield row
      row = []
    }
    row.push(item)
  }
  if (row.length === 0) return
  if (fill !== null && row.length < size) {
    spend(run, 8 * size)
    while (row.length < size) row.push(fill)
  }
  yield row
}

const slice: MethodBody<Value> = (value, [slices, fill = null], run) =>
  iteratorObject(columns(run, value, { count: slices as Value, fill }))

function* columns(
  run: Run,
  value: Value,
  options: { readonly count: Value; readonly fill: Value },
): Generator<Value> {
  const items = toList(run, value)
  const count = requireInt(options.count, 1)
  if (count === 0) throw new PythonError('ZeroDivisionError', 'integer division or modulo by zero')
  const size = Math.floor(items.length / count)
  const extra = items.length % count
  let start = 0
  for (let index = 0; index < count; index++) {
    spend(run, 64)
    const end = start + size + (index < extra ? 1 : 0)
    const row = items.slice(start, end)
    yield options.fill !== null && index >= extra ? [...row, options.fill] : row
    start = end
  }
}

const items: MethodBody<Value> = value =>
  iteratorObject(value instanceof Map ? itemTuples(value).values() : noPairs(value))

// biome-ignore lint/correctness/useYield: what is no mapping is refused when it is walked
function* noPairs(value: Value): Generator<Value> {
  if (!(value instanceof Undefined)) typeError('Can only get item pairs from a mapping.')
}

const attr: MethodBody<Value> = (value, [name]) => {
  if (value instanceof Undefined) value.raise()
  const wanted = requireText(name, 'attribute name')
  const found = findAttribute(value, wanted)
  return found === undefined ? undefinedMember(value, wanted) : found
}

const random: MethodBody<Value> = () =>
  typeError('The filter random is not available: a rendering must not depend on chance.')

const defaulting: MethodBody<Value> = (value, [fallback = '', boolean = false]) =>
  value instanceof Undefined || (isTrue(boolean) && !isTrue(value)) ? fallback : value

const length: MethodBody<Value> = value => requireLength(value)

const table = (
  rows: readonly (readonly [string, string, MethodBody<Value>])[],
): readonly (readonly [string, Method])[] =>
  rows.map(([name, words, body]) => [name, method(signature(name, words), body)])

/** The filters on lists, dicts and other iterables. */
export const LIST_FILTERS: readonly (readonly [string, Method])[] = table([
  ['first', '', first],
  ['last', '', last],
  ['random', '', random],
  ['reverse', '', reverse],
  ['list', '', list],
  ['length', '', length],
  ['count', '', length],
  ['default', 'default_value? boolean?', defaulting],
  ['d', 'default_value? boolean?', defaulting],
  ['dictsort', 'case_sensitive? by? reverse?', dictsort],
  ['sort', 'reverse? case_sensitive? attribute?', sort],
  ['unique', 'case_sensitive? attribute?', unique],
  ['min', 'case_sensitive? attribute?', extreme('<')],
  ['max', 'case_sensitive? attribute?', extreme('>')],
  ['groupby', 'attribute default? case_sensitive?', groupby],
  ['sum', 'attribute? start?', sum],
  ['batch', 'linecount fill_with?', batch],
  ['slice', 'slices fill_with?', slice],
  ['items', '', items],
  ['attr', 'name', attr],
])
