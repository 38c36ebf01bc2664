import { type Named, orElse, type Value } from './values.ts'

/** The argument at that place or of that name. */
export function argument(
  given: readonly Value[],
  named: Named,
  at: number,
  name: string,
): Value | undefined {
  return orElse(given[at], named.get(name))
}
