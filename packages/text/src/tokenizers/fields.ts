/** A JSON object whose fields are not checked yet. */
export type Fields = Readonly<Record<string, unknown>>

/** A part of a tokenizer.json that is not known, or that one model here cannot read and another may. */
export class UnsupportedPartError extends Error {
  override name = 'UnsupportedPartError'
}

/** Takes a JSON object, or throws with the place where something else is. */
export function readFields(value: unknown, where: string): Fields {
  if (typeof value === 'object' && value !== null && !Array.isArray(value)) return value as Fields
  throw mismatch(value, where, 'an object')
}

export function readList(value: unknown, where: string): readonly unknown[] {
  if (Array.isArray(value)) return value
  throw mismatch(value, where, 'a list')
}

export function readText(value: unknown, where: string): string {
  if (typeof value === 'string') return value
  throw mismatch(value, where, 'a string')
}

/** A token id; the ceiling keeps pairs of ids and ranks within exact arithmetic. */
export function readId(value: unknown, where: string): number {
  if (Number.isInteger(value) && (value as number) >= 0 && (value as number) < 2 ** 21) {
    return value as number
  }
  throw mismatch(value, where, 'an id from 0 to 2097151')
}

/** A flag that may be absent or null, which means false. */
export function readFlag(value: unknown, where: string): boolean {
  if (value === undefined || value === null) return false
  if (typeof value === 'boolean') return value
  throw mismatch(value, where, 'true or false')
}

/** A part that may be absent or null. */
export function readOptional<T>(value: unknown, read: (value: unknown) => T): T | undefined {
  return value === undefined || value === null ? undefined : read(value)
}

function mismatch(value: unknown, where: string, expected: string): Error {
  const shown = JSON.stringify(value)?.slice(0, 80) ?? String(value)
  return new Error(`${where} should be ${expected}, but is ${shown}`)
}
