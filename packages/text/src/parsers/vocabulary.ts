/** Where in a marker a control string stands, and how long it is. */
type Control = readonly [offset: number, length: number]

/** The control strings of a vocabulary, and those that markers are made of. */
export interface Vocabulary {
  readonly longestFirst: readonly string[]
  readonly within: Map<string, readonly Control[]>
}

const vocabularies = new WeakMap<readonly string[], Vocabulary>()

/** The vocabulary with these control strings, made once: it is the same for every output. */
export function vocabularyOf(controls: readonly string[]): Vocabulary {
  const known = vocabularies.get(controls)
  if (known) return known
  const longestFirst = [...controls].sort((a, b) => b.length - a.length)
  const vocabulary = { longestFirst, within: new Map() }
  vocabularies.set(controls, vocabulary)
  return vocabulary
}

/** How many markers are cached; some formats make markers of names, of which there is no end. */
const MOST_MARKERS = 256

/** The control strings that a marker is made of: it counts only if all of them are tokens. */
export function controlsWithin(
  marker: string,
  { longestFirst, within }: Vocabulary,
): readonly Control[] {
  const known = within.get(marker)
  if (known) return known
  const found: Control[] = []
  for (let index = 0; index < marker.length; ) {
    const control = longestFirst.find(string => string !== '' && marker.startsWith(string, index))
    if (control) found.push([index, control.length])
    index += control?.length ?? 1
  }
  if (within.size < MOST_MARKERS) within.set(marker, found)
  return found
}
