import { compareText } from '../../python/compare.ts'
import { repr, reprString } from '../../python/repr.ts'
import type { PythonValue } from '../../python/value.ts'

/**
 * The text that tau-bench hashes: Python's `str` of the value with dicts turned into tuples of
 * pairs sorted by key, and lists into tuples.
 */
export function canonical(value: PythonValue): string {
  if (value instanceof Map) {
    const keys = [...value.keys()] as string[]
    return asTuple(keys.sort(compareText).map(key => canonicalPair(key, value.get(key) ?? null)))
  }
  return Array.isArray(value) ? asTuple(value.map(canonical)) : repr(value)
}

/** One key of a dict with its value, as it stands in the hashed text. */
export function canonicalPair(key: string, value: PythonValue): string {
  return `(${reprString(key)}, ${canonical(value)})`
}

function asTuple(items: readonly string[]): string {
  return items.length === 1 ? `(${items[0]},)` : `(${items.join(', ')})`
}
