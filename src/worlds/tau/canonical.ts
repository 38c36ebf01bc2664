import type { PythonDict, PythonValue } from '@espalier/text/python'
import { compareText, repr, reprString } from '@espalier/text/python'

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

/** Whether two values have the same canonical text; parts they share are not looked into. */
export function isSameText(left: PythonValue, right: PythonValue): boolean {
  if (left === right) return true
  if (left instanceof Map && right instanceof Map) return areSameDicts(left, right)
  if (Array.isArray(left) && Array.isArray(right)) {
    return (
      left.length === right.length &&
      left.every((item, index) => isSameText(item, right[index] as PythonValue))
    )
  }
  if (typeof left === 'string' || typeof right === 'string') return false
  // A dict can have the text of a list, and a float is only the same as a float.
  return canonical(left) === canonical(right)
}

function areSameDicts(left: PythonDict, right: PythonDict): boolean {
  if (left.size !== right.size) return false
  for (const [key, value] of left) {
    const other = right.get(key)
    if (other === undefined || !isSameText(value, other)) return false
  }
  return true
}
