/** How things carry what is known of them. */
export interface Carried<Thing, Known> {
  /** The thing, with what whoever made it knows of it. */
  readonly with: (thing: Thing, known: Known) => Thing
  /** What is known of a thing, or found out now. */
  readonly of: (thing: Thing) => Known
}

/**
 * Lets things carry what can be found out by looking into them, if whoever made them knows it already. A map of all
 * things would cost more than they do.
 */
export function carried<Thing extends object, Known>(
  find: (thing: Thing) => Known,
): Carried<Thing, Known> {
  const key = Symbol('carried')
  return {
    with: (thing, known) => Object.defineProperty(thing, key, { value: known }),
    of: thing => (thing as { readonly [key]?: Known })[key] ?? find(thing),
  }
}
