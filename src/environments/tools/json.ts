import type { Json } from '../../core/ids.ts'

/**
 * A copy of a value as plain JSON; throws, naming the place, where the value is not plain: what a
 * report holds must be the same when it is read back years later.
 */
export function toJson(value: unknown, path = 'report'): Json {
  switch (typeof value) {
    case 'string':
    case 'boolean':
      return value
    case 'number':
      if (Number.isFinite(value)) return value
      throw new TypeError(`${path} is ${value}, which JSON cannot hold.`)
    case 'object':
      if (value === null) return null
      if (Array.isArray(value)) return value.map((item, index) => toJson(item, `${path}[${index}]`))
      return toJsonObject(value, path)
    default:
      throw new TypeError(`${path} is of type ${typeof value}, which JSON cannot hold.`)
  }
}

function toJsonObject(value: object, path: string): Json {
  const prototype: unknown = Object.getPrototypeOf(value)
  if (prototype !== Object.prototype && prototype !== null) {
    throw new TypeError(
      `${path} is a ${value.constructor?.name ?? 'class instance'}, not plain JSON.`,
    )
  }
  const entries = Object.entries(value).filter(([, item]) => item !== undefined)
  return Object.fromEntries(entries.map(([key, item]) => [key, toJson(item, `${path}.${key}`)]))
}
