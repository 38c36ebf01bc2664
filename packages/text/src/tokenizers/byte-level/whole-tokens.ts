import type { Vocabulary } from '../vocabulary.ts'
import { byteOf } from './byte-alphabet.ts'

/** A slot: the hash of a token, where its bytes begin and end, and its id. An empty one ends at 0. */
const SLOT = 4

/** The tokens by their bytes, in typed arrays: no string is made of a piece to find out whether it is one. */
export class WholeTokens {
  /** The bytes of all tokens, one behind the other, from 1 on. */
  readonly #bytes: Uint8Array
  readonly #slots: Int32Array
  readonly #shift: number
  readonly #mask: number

  /** Leaves out tokens that are not wanted and such as are not written in the alphabet of bytes. */
  constructor(vocabulary: Vocabulary, isWanted: (id: number) => boolean) {
    const bits = Math.max(4, Math.ceil(Math.log2(1.6 * vocabulary.count + 1)))
    this.#slots = new Int32Array(SLOT << bits)
    this.#shift = 32 - bits
    this.#mask = (SLOT << bits) - 1
    let room = 1
    for (const [token] of vocabulary.entries()) room += token.length
    this.#bytes = new Uint8Array(room)
    let start = 1
    for (const [token, id] of vocabulary.entries()) {
      const end = isWanted(id) ? this.#write(token, start) : start
      if (end === start) continue
      this.#slots.set([hashOf(this.#bytes, start, end), start, end, id], this.#free(start, end))
      start = end
    }
  }

  /** The id of the token that the first bytes are, or -1. */
  find(bytes: Uint8Array, length: number): number {
    const slots = this.#slots
    const hash = hashOf(bytes, 0, length)
    let slot = (hash >>> this.#shift) * SLOT
    for (; slots[slot + 2] !== 0; slot = (slot + SLOT) & this.#mask) {
      const start = slots[slot + 1]!
      if (slots[slot] !== hash || slots[slot + 2]! - start !== length) continue
      let same = 0
      while (same < length && this.#bytes[start + same] === bytes[same]) same++
      if (same === length) return slots[slot + 3]!
    }
    return -1
  }

  /** Writes the bytes of a token and answers where they end; `start` if it has others than bytes. */
  #write(token: string, start: number): number {
    for (let at = 0; at < token.length; at++) {
      const byte = byteOf(token.charCodeAt(at))
      if (byte < 0) return start
      this.#bytes[start + at] = byte
    }
    return start + token.length
  }

  #free(start: number, end: number): number {
    let slot = (hashOf(this.#bytes, start, end) >>> this.#shift) * SLOT
    while (this.#slots[slot + 2] !== 0) slot = (slot + SLOT) & this.#mask
    return slot
  }
}

function hashOf(bytes: Uint8Array, start: number, end: number): number {
  let hash = 0
  for (let at = start; at < end; at++) hash = Math.imul(hash ^ bytes[at]!, 0x9e3779b1)
  return hash ^ (hash >>> 15)
}
