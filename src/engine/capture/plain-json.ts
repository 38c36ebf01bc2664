import type { Json } from '../../base/core/ids.ts'

/** A value as it can be stored; parts that are not JSON are left out. */
export function plainJson(value: unknown): Json {
  return JSON.parse(JSON.stringify(value) ?? 'null') as Json
}
