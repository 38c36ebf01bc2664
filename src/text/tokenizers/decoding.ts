import type { StreamDecoder } from '../tokenizer.ts'

/** Ids to text; ids that `isSkipped` are left out. */
export interface Decoding {
  decode(ids: ArrayLike<number>, isSkipped: (id: number) => boolean): string
  open(isSkipped: (id: number) => boolean): StreamDecoder
  /** The bytes of a token, where a text is nothing but the bytes of its tokens. */
  bytesOf?(id: number): Uint8Array | undefined
}

const NO_BYTES = new Uint8Array()

/** Text as the bytes of its tokens; `bytesOf` is asked once for each id. */
export function byteDecoding(bytesOf: (id: number) => Uint8Array | undefined): Decoding {
  const remember = remembering(bytesOf)
  return {
    decode: (ids, isSkipped) => toText(gather(ids, remember, isSkipped)),
    open: isSkipped => openByteStream(ids => gather(ids, remember, isSkipped)),
    bytesOf: id => remember(id)?.slice(),
  }
}

function remembering(
  bytesOf: (id: number) => Uint8Array | undefined,
): (id: number) => Uint8Array | undefined {
  const known: (Uint8Array | undefined)[] = []
  return id => {
    const found = known[id]
    if (found !== undefined) return found
    const bytes = bytesOf(id)
    // Only ids that exist are kept: the list must not grow with what a caller makes up.
    if (bytes !== undefined) known[id] = bytes
    return bytes
  }
}

let scratch = new Uint8Array(1 << 14)

/** The bytes of tokens; good until the next. */
function gather(
  ids: ArrayLike<number>,
  bytesOf: (id: number) => Uint8Array | undefined,
  isSkipped: (id: number) => boolean,
): Uint8Array {
  // What a very long text needed is not kept.
  if (scratch.length > 1 << 20) scratch = new Uint8Array(1 << 14)
  let length = 0
  for (let index = 0; index < ids.length; index++) {
    const id = ids[index]!
    const token = isSkipped(id) ? NO_BYTES : (bytesOf(id) ?? NO_BYTES)
    if (length + token.length > scratch.length) {
      const larger = new Uint8Array(2 * (length + token.length))
      larger.set(scratch)
      scratch = larger
    }
    for (let at = 0; at < token.length; at++) scratch[length++] = token[at]!
  }
  return scratch.subarray(0, length)
}

/** Bytes that are no UTF-8 become U+FFFD, one for each maximal part; a byte order mark stays. */
function toText(bytes: Uint8Array): string {
  return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length).toString('utf8')
}

function openByteStream(gatherBytes: (ids: ArrayLike<number>) => Uint8Array): StreamDecoder {
  let held: Uint8Array = NO_BYTES
  return {
    push: ids => {
      const bytes = Buffer.concat([held, gatherBytes(ids)])
      const whole = bytes.length - unfinished(bytes)
      held = bytes.subarray(whole)
      return toText(bytes.subarray(0, whole))
    },
    end: () => {
      const text = toText(held)
      held = NO_BYTES
      return text
    },
  }
}

/** How many bytes at the end may be the beginning of a character whose rest is still to come. */
function unfinished(bytes: Uint8Array): number {
  for (let back = 1; back <= 3 && back <= bytes.length; back++) {
    const byte = bytes[bytes.length - back]!
    if (byte < 0x80) return 0
    if (byte >= 0xc0) return back < (byte < 0xe0 ? 2 : byte < 0xf0 ? 3 : 4) ? back : 0
  }
  return 0
}
