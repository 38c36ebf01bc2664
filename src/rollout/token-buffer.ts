import { crc32 } from 'node:zlib'

/** A path's tokens in one array that grows at its end; views of it stay valid while it does. */
export interface TokenBuffer {
  readonly length: number
  append(ids: Int32Array): void
  /** The tokens so far; no copy is made. */
  view(from?: number): Int32Array
  /** CRC-32 of the first `length` tokens; only what came since it was last asked for is read. */
  digest(length: number): number
  /** A buffer of its own with the first `length` tokens. */
  fork(length: number): TokenBuffer
}

/** Opens a buffer that begins with these tokens. */
export function openTokenBuffer(ids: Int32Array): TokenBuffer {
  let tokens = new Int32Array(Math.max(256, ids.length * 2))
  let length = 0
  let digested = { length: 0, value: 0 }

  const buffer: TokenBuffer = {
    get length() {
      return length
    },
    append(more) {
      if (length + more.length > tokens.length) {
        const larger = new Int32Array((length + more.length) * 2)
        larger.set(tokens.subarray(0, length))
        tokens = larger
      }
      tokens.set(more, length)
      length += more.length
    },
    view(from = 0) {
      return tokens.subarray(from, length)
    },
    digest(end) {
      const known = digested.length <= end ? digested : { length: 0, value: 0 }
      const added = tokens.subarray(known.length, end)
      const bytes = new Uint8Array(added.buffer, added.byteOffset, added.byteLength)
      digested = { length: end, value: crc32(bytes, known.value) }
      return digested.value
    },
    fork(end) {
      return openTokenBuffer(tokens.subarray(0, end))
    },
  }
  buffer.append(ids)
  return buffer
}
