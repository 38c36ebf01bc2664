import { PythonError } from '../error.ts'
import type { Runtime } from '../runtime.ts'
import { spend } from '../runtime.ts'
import type { Method, MethodBody } from '../signature.ts'
import { method, signature } from '../signature.ts'
import { plain } from '../text/text.ts'
import { PythonTuple, type Value } from '../value.ts'
import { requireBound, requireInt, typeError, valueError } from './arguments.ts'
import { sortedItems } from './sorting.ts'

type Dict = Map<Value, Value>

/** A method that changes its object, which is told before. */
export function changing<Self extends Value>(
  words: readonly [name: string, words: string, byName?: boolean],
  body: MethodBody<Self>,
): readonly [string, Method] {
  const [name, parameters, byName = false] = words
  const made = method<Self>(signature(name, parameters, byName), (self, values, run) => {
    run.language.touch(self)
    return body(self, values, run)
  })
  return [name, { ...made, changes: true }]
}

const found = (dict: Dict, key: Value | undefined): Value | undefined =>
  key === undefined ? undefined : dict.get(key)

const get: MethodBody<Dict> = (self, values, run) => {
  const key = values[0] as Value
  const value =
    typeof key === 'string' && self.has(key)
      ? self.get(key)
      : found(self, run.language.find(self, key))
  if (value !== undefined) return value
  return values[1] === undefined ? null : values[1]
}

/** Stores like `dict[key] = value`: an equal key keeps its place and its first spelling. */
export function store(run: Runtime, dict: Dict, [key, value]: readonly [Value, Value]): void {
  dict.set(run.language.find(dict, key) ?? key, value)
}

/** The pairs that `dict(…)` and `update(…)` take in, one after the other. */
function* pairsOf(run: Runtime, from: Value): Generator<readonly [Value, Value]> {
  if (from instanceof Map) {
    yield* from
    return
  }
  let index = 0
  for (const pair of run.language.iterate(run, from)) {
    const items = [...run.language.iterate(run, pair)]
    if (items.length !== 2) {
      valueError(
        `dictionary update sequence element #${index} has length ${items.length}; 2 is required`,
      )
    }
    yield items as [Value, Value]
    index++
  }
}

/** Takes into a dict what `update` or `dict` was given. */
export function addPairs(run: Runtime, dict: Dict, from: Value | undefined): void {
  if (from === undefined) return
  for (const pair of pairsOf(run, from)) store(run, dict, pair)
}

const update: Method = {
  changes: true,
  call: (run, self, { positional, named }) => {
    if (positional.length > 1)
      typeError(`update expected at most 1 argument, got ${positional.length}`)
    run.language.touch(self)
    addPairs(run, self as Dict, positional[0])
    for (const pair of named ?? []) store(run, self as Dict, pair)
    return null
  },
}

const keyError = (run: Runtime, key: Value): PythonError =>
  new PythonError('KeyError', plain(run.language.repr(run, key)))

const view = (part: 'keys' | 'values' | 'items'): readonly [string, Method] => [
  part,
  method<Dict>(signature(part, '', false), (self, _, run) => run.language.view(self, part)),
]

/** The methods of `dict`. */
export const DICT_METHODS: ReadonlyMap<string, Method> = new Map<string, Method>([
  ['get', method(signature('get', 'key default?', false), get)],
  view('items'),
  view('keys'),
  view('values'),
  [
    'copy',
    method<Dict>(signature('copy', '', false), (self, _, run) => {
      spend(run, 8 * self.size)
      return run.language.copy(self)
    }),
  ],
  changing<Dict>(['clear', ''], self => {
    self.clear()
    return null
  }),
  changing<Dict>(['pop', 'key default?'], (self, [key, preset], run) => {
    const known = run.language.find(self, key as Value)
    if (known === undefined) {
      if (preset !== undefined) return preset
      throw keyError(run, key as Value)
    }
    const value = self.get(known) as Value
    self.delete(known)
    return value
  }),
  changing<Dict>(['popitem', ''], self => {
    const last = [...self].at(-1)
    if (last === undefined) throw new PythonError('KeyError', "'popitem(): dictionary is empty'")
    self.delete(last[0])
    return new PythonTuple(last)
  }),
  changing<Dict>(['setdefault', 'key default?'], (self, [key, preset = null], run) => {
    const known = found(self, run.language.find(self, key as Value))
    if (known !== undefined) return known
    self.set(key as Value, preset)
    return preset
  }),
  ['update', update],
])

const itemsOf = (self: Value): readonly Value[] =>
  self instanceof PythonTuple ? self.items : (self as readonly Value[])

const index: MethodBody<Value> = (self, [item, start, stop], run) => {
  const items = itemsOf(self)
  spend(run, items.length)
  const clamp = (bound: number): number => (bound < 0 ? Math.max(0, bound + items.length) : bound)
  const end = Math.min(items.length, clamp(requireBound(stop) ?? items.length))
  for (let at = clamp(requireBound(start) ?? 0); at < end; at++) {
    if (run.language.isEqual(run, items[at] as Value, item as Value)) return at
  }
  if (self instanceof PythonTuple) return valueError('tuple.index(x): x not in tuple')
  return valueError(`${plain(run.language.repr(run, item as Value))} is not in list`)
}

const count: MethodBody<Value> = (self, [item], run) => {
  const items = itemsOf(self)
  spend(run, items.length)
  return items.filter(each => run.language.isEqual(run, each, item as Value)).length
}

/** The methods of `tuple`. */
export const TUPLE_METHODS: ReadonlyMap<string, Method> = new Map<string, Method>([
  ['index', method(signature('index', 'value start? stop?', false), index)],
  ['count', method(signature('count', 'value', false), count)],
])

type List = Value[]

const pop: MethodBody<List> = (self, [given = -1]) => {
  const place = requireInt(given, -1)
  if (self.length === 0) throw new PythonError('IndexError', 'pop from empty list')
  const at = place < 0 ? place + self.length : place
  if (at < 0 || at >= self.length) throw new PythonError('IndexError', 'pop index out of range')
  return self.splice(at, 1)[0] as Value
}

const remove: MethodBody<List> = (self, [item], run) => {
  const at = self.findIndex(each => run.language.isEqual(run, each, item as Value))
  if (at < 0) return valueError('list.remove(x): x not in list')
  self.splice(at, 1)
  return null
}

/** The methods of `list`. */
export const LIST_METHODS: ReadonlyMap<string, Method> = new Map<string, Method>([
  ...TUPLE_METHODS,
  [
    'copy',
    method<readonly Value[]>(signature('copy', '', false), (self, _, run) => {
      spend(run, 8 * self.length)
      return [...self]
    }),
  ],
  changing<List>(['append', 'object'], (self, [item]) => {
    self.push(item as Value)
    return null
  }),
  changing<List>(['clear', ''], self => {
    self.length = 0
    return null
  }),
  changing<List>(['pop', 'index?'], pop),
  changing<List>(['remove', 'value'], remove),
  changing<List>(['reverse', ''], self => {
    self.reverse()
    return null
  }),
  changing<List>(['insert', 'index object'], (self, [place, item]) => {
    self.splice(requireInt(place, 0), 0, item as Value)
    return null
  }),
  changing<List>(['extend', 'iterable'], (self, [items], run) => {
    for (const item of [...run.language.iterate(run, items as Value)]) self.push(item)
    return null
  }),
  changing<List>(['sort', '* key? reverse?', true], (self, [key, reverse], run) => {
    self.splice(0, self.length, ...sortedItems(run, self, { key, reverse }))
    return null
  }),
])
