const special = /[\\^$.*+?()[\]{}|]/g

/** A handful of literal strings that are looked for together, in one pass. */
export class Markers {
  readonly strings: readonly string[]
  /** The length of the longest. */
  readonly longest: number
  /** The characters that markers begin with. */
  readonly #firsts: string
  readonly #pattern: RegExp

  constructor(strings: readonly string[]) {
    // The longest first, so that of two markers at one place the more specific one is found.
    this.strings = [...strings].sort((left, right) => right.length - left.length)
    this.longest = this.strings[0]?.length ?? 0
    this.#firsts = [...new Set(this.strings.map(marker => marker.charAt(0)))].join('')
    const literals = this.strings.map(marker => marker.replace(special, '\\$&'))
    this.#pattern = new RegExp(literals.length > 0 ? literals.join('|') : '(?!)', 'g')
  }

  /** The first marker at or behind `from`. */
  find(
    text: string,
    from: number,
  ): { readonly index: number; readonly marker: string } | undefined {
    this.#pattern.lastIndex = from
    if (!this.#pattern.test(text)) return undefined
    const end = this.#pattern.lastIndex
    // Of those that end there it is the longest, or a longer one would have been found before it.
    for (const marker of this.strings) {
      const index = end - marker.length
      if (index >= from && text.startsWith(marker, index)) return { index, marker }
    }
    return undefined
  }

  /** Where the tail of `text` begins that may still grow into a marker; its length if none may. */
  unsure(text: string, from: number): number {
    for (let index = Math.max(from, text.length - this.longest + 1); index < text.length; index++) {
      if (!this.#firsts.includes(text.charAt(index))) continue
      const tail = text.slice(index)
      const couldBecome = (marker: string): boolean =>
        tail.length < marker.length && marker.startsWith(tail)
      if (this.strings.some(couldBecome)) return index
    }
    return text.length
  }
}

/** Markers of the given strings, to be made once per format. */
export const markers = (...strings: readonly string[]): Markers => new Markers(strings)
