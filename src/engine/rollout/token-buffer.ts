import { crc32 } from 'node:zlib'

/** A path's tokens in one array that grows at its end; views of it stay valid while it does. */
export interface TokenBuffer {
  readonly length: number
  append(ids: Int32Array): void
  /** The tokens so far; no copy is made. */
  view(from?: number): Int32Array
  /** CRC-32 of the first `length` tokens; only tokens since the last call are read. */
  digest(length: number): number
  /** A buffer of its own with the first `length` tokens. */
  fork(length: number): TokenBuffer
}

/** Opens a buffer that begins with these tokens. */
export function makeTokenBuffer(ids: Int32Array): TokenBuffer {
  return new GrowingTokens(ids)
}

/** How much larger new memory is than what is needed: every open attempt holds what is not used of it. */
const growth = 1.5

/** A class, because every path of every open attempt keeps one. */
class GrowingTokens implements TokenBuffer {
  #tokens: Int32Array
  #length = 0
  #digestedLength = 0
  #digest = 0

  constructor(ids: Int32Array) {
    this.#tokens = new Int32Array(Math.max(256, Math.ceil(ids.length * growth)))
    this.append(ids)
  }

  get length(): number {
    return this.#length
  }

  append(ids: Int32Array): void {
    const end = this.#length + ids.length
    if (end > this.#tokens.length) {
      const larger = new Int32Array(Math.ceil(end * growth))
      larger.set(this.view())
      this.#tokens = larger
    }
    this.#tokens.set(ids, this.#length)
    this.#length = end
  }

  view(from = 0): Int32Array {
    return this.#tokens.subarray(from, this.#length)
  }

  digest(length: number): number {
    const isFurther = this.#digestedLength <= length
    const { buffer, byteOffset, byteLength } = this.#tokens.subarray(
      isFurther ? this.#digestedLength : 0,
      length,
    )
    const added = new Uint8Array(buffer, byteOffset, byteLength)
    this.#digest = crc32(added, isFurther ? this.#digest : 0)
    this.#digestedLength = length
    return this.#digest
  }

  fork(length: number): TokenBuffer {
    return new GrowingTokens(this.#tokens.subarray(0, length))
  }
}
