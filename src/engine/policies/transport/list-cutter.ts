import { ByteScanner, closing } from './byte-scanner.ts'
import type { Fields } from './reading.ts'

/**
 * Cuts lists out of an answer, so that little is left to be parsed. Lists of numbers are most of an answer, and
 * reading them straight from the bytes into typed arrays costs a fraction of parsing them as JSON.
 */
export class ListCutter {
  /** Whether a list was there but not as expected. */
  isUnusual = false
  readonly #body: Buffer
  /** A character per byte. */
  readonly #text: string
  /** Where lists with a name begin, behind their brackets. */
  readonly #places: readonly number[]
  readonly #cuts: (readonly [from: number, to: number])[] = []

  constructor(body: Buffer) {
    this.#body = body
    this.#text = body.toString('latin1')
    this.#places = placesIn(this.#text)
  }

  /**
   * Reads the list of this name up to the bracket that closes it; undefined if there is none, or if it is unusual:
   * in another form, or there twice.
   */
  take<T>(name: string, read: (scanner: ByteScanner) => T | undefined): T | undefined {
    const key = `"${name}":[`
    const found = this.#find(key, 0)
    if (found === undefined) return undefined
    const scanner = new ByteScanner(this.#body, found)
    const taken = read(scanner)
    this.isUnusual ||=
      taken === undefined || scanner.byte !== closing || this.#find(key, scanner.at) !== undefined
    if (this.isUnusual) return undefined
    this.#cuts.push([found, scanner.at])
    return taken
  }

  /** What is left, with empty lists in place of those that were taken; undefined if it is not to be used. */
  parseRest(): Fields | undefined {
    if (this.isUnusual) return undefined
    try {
      return JSON.parse(this.#rest())
    } catch {
      return undefined
    }
  }

  /** Where the first list of this key that lies behind `from` begins. */
  #find(key: string, from: number): number | undefined {
    for (const place of this.#places) {
      const start = place - key.length
      // Asked first, since it tells nearly all others apart.
      if (start < from || this.#text.charCodeAt(start) !== quote) continue
      if (this.#text.startsWith(key, start)) return place
    }
    return undefined
  }

  #rest(): string {
    let text = ''
    let from = 0
    for (const [start, end] of this.#cuts.sort((a, b) => a[0] - b[0])) {
      text += this.#text.slice(from, start)
      from = end
    }
    text += this.#text.slice(from)
    return beyondAscii.test(text) ? Buffer.from(text, 'latin1').toString() : text
  }
}

const quote = 34
const beyondAscii = /[\x80-\xff]/

function placesIn(text: string): readonly number[] {
  const places: number[] = []
  let found = text.indexOf(':[')
  while (found >= 0) {
    places.push(found + 2)
    found = text.indexOf(':[', found + 2)
  }
  return places
}
