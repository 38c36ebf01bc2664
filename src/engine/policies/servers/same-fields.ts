import type { SampleRequest } from '../../../base/core/policy.ts'

/** What the requests of one run share, nearly always: it is written once for all of them. */
export const sharedFields = [
  'sampling',
  'stopIds',
  'stopStrings',
  'topLogprobs',
  'form',
] as const satisfies readonly (keyof SampleRequest)[]

/** Whether two things agree in these fields. */
export function isSameIn<Thing extends object>(
  one: Thing | undefined,
  other: Thing,
  fields: readonly (keyof Thing)[],
): boolean {
  return one !== undefined && fields.every(field => one[field] === other[field])
}
