/**
 * The defaults with the given options over them. A name that has no default is refused, so that a
 * misspelt or foreign option never passes in silence; `undefined` leaves the default in place.
 */
export function readOptions<T extends object>(owner: string, defaults: T, options: Partial<T>): T {
  const settings = { ...defaults }
  for (const key of Object.keys(options) as (keyof T & string)[]) {
    if (!Object.hasOwn(defaults, key)) {
      const known = Object.keys(defaults).join(', ')
      throw new TypeError(`${owner} has no option "${key}". Known: ${known || 'none'}.`)
    }
    const value = options[key]
    if (value !== undefined) settings[key] = value
  }
  return settings
}

/** The entry of that name, or an error that lists the names there are. */
export function named<T>(kind: string, table: Readonly<Record<string, T>>, name: string): T {
  if (Object.hasOwn(table, name)) return table[name] as T
  throw new TypeError(`No ${kind} called "${name}". Known: ${Object.keys(table).join(', ')}.`)
}

/** Refuses a number that is not finite or lies outside [low, high], naming both. */
export function checkNumber(
  what: string,
  value: number,
  { low = Number.NEGATIVE_INFINITY, high = Number.POSITIVE_INFINITY } = {},
): void {
  if (Number.isFinite(value) && value >= low && value <= high) return
  throw new RangeError(`${what} must be a finite number in [${low}, ${high}], got ${value}.`)
}

/** Refuses a word that is not among the known ones, listing them. */
export function checkWord(what: string, word: string, known: readonly string[]): void {
  if (known.includes(word)) return
  throw new TypeError(`${what} cannot be "${word}". Known: ${known.join(', ')}.`)
}
