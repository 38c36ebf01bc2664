import { dictView } from '../dict.ts'
import { copyDict } from '../foreign.ts'
import { isEqual, lookUp } from '../operations.ts'
import { spend } from '../run.ts'
import { printableRepr } from '../show.ts'
import type { Method, MethodBody } from '../signature.ts'
import { method, REFUSED, signature } from '../signature.ts'
import { plain } from '../text.ts'
import type { Dict, Value } from '../value.ts'
import { sequenceItems, typeError, typeOf, valueError } from '../value.ts'
import { requireInt } from './methods-split.ts'

const refused = (names: string): [string, Method][] => names.split(' ').map(name => [name, REFUSED])

const get: MethodBody<Dict> = (self, values) => {
  const key = values[0]
  if (Array.isArray(key) || key instanceof Map) typeError(`unhashable type: '${typeOf(key)}'`)
  const found = typeof key === 'string' ? self.get(key) : lookUp(self, key as Value)
  return found === undefined ? (values[1] ?? null) : found
}

/** The methods of `dict`. */
export const DICT_METHODS: ReadonlyMap<string, Method> = new Map<string, Method>([
  ['get', method(signature('get', 'key default?', false), get)],
  ['items', method<Dict>(signature('items', '', false), self => dictView(self, 'items'))],
  ['keys', method<Dict>(signature('keys', '', false), self => dictView(self, 'keys'))],
  ['values', method<Dict>(signature('values', '', false), self => dictView(self, 'values'))],
  [
    'copy',
    method<Dict>(signature('copy', '', false), (self, _, run) => {
      spend(run, 8 * self.size)
      return copyDict(self)
    }),
  ],
  ...refused('clear pop popitem setdefault update'),
])

const index: MethodBody<Value> = (self, [item, start, stop], run) => {
  const items = sequenceItems(self) as readonly Value[]
  spend(run, items.length)
  const clamp = (bound: number): number => (bound < 0 ? Math.max(0, bound + items.length) : bound)
  const end = Math.min(items.length, clamp(requireInt(stop, items.length)))
  for (let at = clamp(requireInt(start, 0)); at < end; at++) {
    if (isEqual(run, items[at] as Value, item as Value)) return at
  }
  return valueError(`${plain(printableRepr(run, item as Value))} is not in ${typeOf(self)}`)
}

const count: MethodBody<Value> = (self, [item], run) => {
  const items = sequenceItems(self) as readonly Value[]
  spend(run, items.length)
  return items.filter(each => isEqual(run, each, item as Value)).length
}

/** The methods of `tuple`. */
export const TUPLE_METHODS: ReadonlyMap<string, Method> = new Map<string, Method>([
  ['index', method(signature('index', 'value start? stop?', false), index)],
  ['count', method(signature('count', 'value', false), count)],
])

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
  ...refused('append clear pop reverse insert sort extend remove'),
])
