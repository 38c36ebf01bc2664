import { type Named, Native, orElse, typeError, type Value } from '../values.ts'

/** Methods by name; the first argument of each is the object itself. */
export function defineMethods(
  methods: Readonly<Record<string, (given: readonly Value[], named: Named) => Value>>,
): ReadonlyMap<string, Native> {
  return new Map(Object.entries(methods).map(([name, run]) => [name, new Native(name, run)]))
}

/** The argument at that place or of that name. */
export function argument(
  given: readonly Value[],
  named: Named,
  at: number,
  name: string,
): Value | undefined {
  return orElse(given[at], named.get(name))
}

/** Refuses another number of arguments than one, the object itself not counted. */
export function requireOne(given: readonly Value[], method: string): Value {
  if (given.length === 2) return given[1] as Value
  throw typeError(`${method}() takes exactly one argument (${given.length - 1} given)`)
}
