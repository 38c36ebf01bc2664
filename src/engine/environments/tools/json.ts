import type { Json } from '../../../base/core/ids.ts'

/** Objects within objects: deeper than any report, and far from the end of the stack. */
const deepest = 500

/**
 * A copy of a value as plain JSON; throws, naming the place, if the value is not plain: what a
 * report holds must be the same when it is read back years later.
 */
export function toJson(value: unknown, path = 'report', depth = 0): Json {
  switch (typeof value) {
    case 'string':
    case 'boolean':
      return value
    case 'number':
      if (Number.isFinite(value)) return value
      throw new TypeError(`${path} is ${value}, which JSON cannot hold.`)
    case 'object':
      if (value === null) return null
      if (depth > deepest)
        throw new TypeError(`${path.slice(0, 100)}… contains itself or nests too deep.`)
      if (!Array.isArray(value)) return toJsonObject(value, path, depth)
      return value.map((item, index) => toJson(item, `${path}[${index}]`, depth + 1))
    default:
      throw new TypeError(`${path} is of type ${typeof value}, which JSON cannot hold.`)
  }
}

function toJsonObject(value: object, path: string, depth: number): Json {
  const prototype: unknown = Object.getPrototypeOf(value)
  if (prototype !== Object.prototype && prototype !== null) {
    throw new TypeError(
      `${path} is a ${value.constructor?.name ?? 'class instance'}, not plain JSON.`,
    )
  }
  const entries = Object.entries(value).filter(([, item]) => item !== undefined)
  return Object.fromEntries(
    entries.map(([key, item]) => [key, toJson(item, `${path}.${key}`, depth + 1)]),
  )
}
