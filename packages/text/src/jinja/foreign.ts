import type { PythonDict, PythonKey, PythonValue } from '../python/value.ts'
import { PythonTuple } from '../python/value.ts'
import { TemplateText } from './template-text.ts'
import { foreignOf, foreignText, makeText } from './text.ts'
import type { Dict, Text, Value } from './value.ts'
import { sequenceItems } from './value.ts'

/** The keys of dicts that came from outside; keys themselves stay plain so that lookups stay simple. */
const foreignKeys = new WeakMap<object, ReadonlySet<string>>()

/**
 * Wraps a text from outside, so that a rendering reports where its characters went.
 * It renders to the same characters as the text itself.
 */
export const markForeign = (text: string): TemplateText => foreignText(text)

/** What a template may be given: Python values, with texts from outside wrapped if wanted. */
export type TemplateInput =
  | PythonValue
  | TemplateText
  | readonly TemplateInput[]
  | Map<PythonKey, TemplateInput>

/** The characters of a text that are foreign, as pairs of offsets; `key` if it stands in a dict. */
export type ForeignRanges = (text: string, key?: PythonKey) => readonly number[]

/** Wraps every string inside a value, keys of dicts too; `rangesOf` says which characters are foreign. */
export function markForeignWithin(
  value: PythonValue,
  rangesOf: ForeignRanges,
  key?: PythonKey,
): TemplateInput {
  if (typeof value === 'string')
    return makeText(value, rangesOf(value, key), false) as TemplateInput
  if (typeof value !== 'object' || value === null) return value
  if (Array.isArray(value)) return value.map(item => markForeignWithin(item, rangesOf, key))
  if (value instanceof PythonTuple) {
    return new PythonTuple(
      value.items.map(item => markForeignWithin(item, rangesOf)),
    ) as PythonTuple
  }
  return value instanceof Map ? markDict(value, rangesOf) : value
}

function markDict(dict: PythonDict, rangesOf: ForeignRanges): TemplateInput {
  const marked = new Map<PythonKey, TemplateInput>()
  const keys = new Set<string>()
  for (const [key, item] of dict) {
    if (typeof key === 'string' && rangesOf(key).length > 0) keys.add(key)
    marked.set(key, markForeignWithin(item, rangesOf, key))
  }
  if (keys.size > 0) foreignKeys.set(marked, keys)
  return marked
}

/** A key of a dict as a value: marked if it came from outside. */
export function keyValue(dict: Dict, key: PythonKey): Value {
  if (typeof key !== 'string') return key as Value
  return foreignKeys.get(dict)?.has(key) ? foreignText(key) : key
}

/** The keys of a dict as values. */
export function keyValues(dict: Dict): Value[] {
  const marked = foreignKeys.get(dict)
  const keys: Value[] = [...dict.keys()]
  if (!marked) return keys
  return keys.map(key => (typeof key === 'string' && marked.has(key) ? foreignText(key) : key))
}

/** Remembers that a text from outside became a key of the dict. */
export function rememberKey(dict: Dict, key: Text): void {
  if (typeof key === 'string' || foreignOf(key).length === 0) return
  foreignKeys.set(dict, new Set([...(foreignKeys.get(dict) ?? []), key.text]))
}

/** Whether a value holds a character from outside, at any depth. */
export function holdsForeign(value: Value): boolean {
  if (typeof value !== 'object' || value === null) return false
  if (value instanceof TemplateText) return value.foreign.length > 0
  if (value instanceof Map) {
    if (foreignKeys.has(value)) return true
    for (const item of value.values()) if (holdsForeign(item)) return true
    return false
  }
  return sequenceItems(value)?.some(holdsForeign) ?? false
}

/** A copy of a dict that keeps which keys came from outside. */
export function copyDict(dict: Dict): Dict {
  const copy: Dict = new Map(dict)
  const marked = foreignKeys.get(dict)
  if (marked) foreignKeys.set(copy, marked)
  return copy
}
