/** Objects within objects: deeper than what any tool is called with, and far from the end of the stack. */
const deepest = 1000

/**
 * A call's input as its record keeps it: objects and lists are copied, since a tool may keep what it
 * was given and change it later. Throws for what contains itself or nests deeper than can be written.
 */
export function recorded(value: unknown, depth = 0): unknown {
  if (typeof value !== 'object' || value === null) return value
  if (depth > deepest) throw new RangeError(`it nests deeper than ${deepest}`)
  if (Array.isArray(value)) return value.map(item => recorded(item, depth + 1))
  const prototype: unknown = Object.getPrototypeOf(value)
  if (prototype !== Object.prototype && prototype !== null) return value
  return Object.fromEntries(
    Object.entries(value).map(([key, item]) => [key, recorded(item, depth + 1)]),
  )
}

/** Whether a value that was read from a text can be recorded. */
export function canBeRecorded(value: unknown, text: string): boolean {
  if (text.length <= deepest) return true
  try {
    recorded(value)
    return true
  } catch {
    return false
  }
}
