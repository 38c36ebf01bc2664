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
  readonly #cuts: (readonly [from: number, to: number])[] = []

  constructor(body: Buffer) {
    this.#body = body
  }

  /**
   * Reads the list of this name up to the bracket that closes it; undefined if there is none, or if it is unusual:
   * in another form, or there twice.
   */
  take<T>(name: string, read: (scanner: ByteScanner) => T | undefined): T | undefined {
    const key = `"${name}":[`
    const found = this.#body.indexOf(key, 0, 'latin1')
    if (found < 0) return undefined
    const scanner = new ByteScanner(this.#body, found + key.length)
    const taken = read(scanner)
    this.isUnusual ||=
      taken === undefined ||
      scanner.byte !== closing ||
      this.#body.includes(key, scanner.at, 'latin1')
    if (this.isUnusual) return undefined
    this.#cuts.push([found + key.length, scanner.at])
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

  #rest(): string {
    let text = ''
    let from = 0
    for (const [start, end] of this.#cuts.sort((a, b) => a[0] - b[0])) {
      text += this.#body.toString('utf8', from, start)
      from = end
    }
    return text + this.#body.toString('utf8', from)
  }
}
