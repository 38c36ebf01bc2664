import { isRecord } from '../../engine/environments/tools/json-schema.ts'

/** Fields of an observation that are read elsewhere. */
const ignoredFields = new Set(['metadata', 'done', 'reward'])

/**
 * An observation as a policy reads it: the one field that is asked for, the only text if there
 * is only one, and otherwise all fields that hold something, as JSON.
 */
export function observationText(
  observation: Readonly<Record<string, unknown>>,
  field: string | undefined,
): string {
  if (field !== undefined) return plain(observation[field])
  const held = Object.entries(observation).filter(
    ([name, value]) => !ignoredFields.has(name) && is(value),
  )
  const [only] = held
  if (!only) return ''
  if (held.length === 1 && typeof only[1] === 'string') return only[1]
  return JSON.stringify(Object.fromEntries(held))
}

function is(value: unknown): boolean {
  if (value === null || value === undefined || value === '') return false
  if (Array.isArray(value)) return value.length > 0
  return !isRecord(value) || Object.keys(value).length > 0
}

function plain(value: unknown): string {
  if (typeof value === 'string') return value
  return value === undefined ? '' : JSON.stringify(value)
}
