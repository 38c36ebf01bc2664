import { asText, isText, typeName } from '../compare.ts'
import { PythonError } from '../error.ts'
import { plain } from '../text/text.ts'
import type { Text, Value } from '../value.ts'

/** Raises a TypeError. */
export function typeError(message: string): never {
  throw new PythonError('TypeError', message)
}

/** Raises a ValueError. */
export function valueError(message: string): never {
  throw new PythonError('ValueError', message)
}

/** A value that must be a text, with what is known of it; an object of a class derived from `str` is one. */
export function toText(value: Value | undefined, what: string): Text {
  if (isText(value)) return value
  return asText(value) ?? typeError(`${what} must be str, not ${typeName(value as Value)}`)
}

/** An argument that must be a string. */
export const requireText = (value: Value | undefined, what: string): string =>
  plain(toText(value, what))

/** An argument that must be an int, or its default. */
export function requireInt(value: Value | undefined, fallback: number): number {
  if (value === undefined) return fallback
  if (typeof value === 'number' && Number.isInteger(value)) return value
  if (typeof value === 'boolean') return Number(value)
  if (typeof value === 'bigint') {
    throw new PythonError('OverflowError', 'Python int too large to convert to C ssize_t')
  }
  return typeError(`'${typeName(value)}' object cannot be interpreted as an integer`)
}

/** A bound of a part of a sequence: an int, or None, which is no bound. */
export function requireBound(value: Value | undefined): number | undefined {
  if (value === undefined || value === null) return undefined
  if (typeof value === 'bigint')
    return value < 0n ? -Number.MAX_SAFE_INTEGER : Number.MAX_SAFE_INTEGER
  if (typeof value === 'boolean' || (typeof value === 'number' && Number.isInteger(value)))
    return Number(value)
  return typeError('slice indices must be integers or None or have an __index__ method')
}
