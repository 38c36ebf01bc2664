import type { Json } from '../core/ids.ts'

/** A value as it can be stored; what is no JSON is left out. */
export function plainJson(value: unknown): Json {
  return JSON.parse(JSON.stringify(value) ?? 'null') as Json
}
