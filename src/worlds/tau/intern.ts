import type { PythonDict, PythonKey, PythonValue } from '@espalier/text/python'

/** Longer texts are never keys, so interning them would not help. */
const LONGEST_NAME = 40

/**
 * A copy of a value in which equal short texts are one text of the engine. Texts cut out of a file are
 * compared letter by letter when something is looked up by them; interned ones are compared at once.
 */
export function intern(value: PythonValue, known = new Map<string, string>()): PythonValue {
  if (typeof value === 'string') return internText(value, known)
  if (Array.isArray(value)) return value.map(item => intern(item, known))
  if (!(value instanceof Map)) return value
  const dict: PythonDict = new Map()
  value.forEach((item, key) => {
    dict.set(intern(key, known) as PythonKey, intern(item, known))
  })
  return dict
}

function internText(text: string, known: Map<string, string>): string {
  if (text.length > LONGEST_NAME) return text
  let interned = known.get(text)
  if (interned === undefined) {
    // The name of a property is always the engine's own copy.
    interned = Object.keys({ [text]: 0 })[0] as string
    known.set(text, interned)
  }
  return interned
}
