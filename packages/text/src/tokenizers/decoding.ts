import type { StreamDecoder } from './tokenizer.ts'

/** Ids to text; ids that `isSkipped` are left out. */
export interface Decoding {
  decode(ids: ArrayLike<number>, isSkipped: (id: number) => boolean): string
  open(isSkipped: (id: number) => boolean): StreamDecoder
  /** The bytes of a token, if a text is nothing but the bytes of its tokens. */
  bytesOf?(id: number): Uint8Array | undefined
}

const NO_BYTES = new Uint8Array()

/** Text as the bytes of its tokens; `bytesOf` is asked once for each id. */
export function byteDecoding(bytesOf: (id: number) => Uint8Array | undefined): Decoding {
  const remember = remembering(bytesOf)
  return {
    decode: (ids, isSkipped) => {
      const length = gather(ids, remember, isSkipped)
      return scratch.toString('utf8', 0, length)
    },
    open: isSkipped =>
      openByteStream(ids => {
        const length = gather(ids, remember, isSkipped)
        return scratch.subarray(0, length)
      }),
    bytesOf: id => remember(id)?.slice(),
  }
}

/** Cached ids are kept in pages: JavaScript engines turn an array with gaps into a slow dictionary. */
const pageBits = 12
const pageSize = 1 << pageBits

function remembering(
  bytesOf: (id: number) => Uint8Array | undefined,
): (id: number) => Uint8Array | undefined {
  const pages: (Uint8Array | undefined)[][] = []
  return id => {
    const found = pages[id >> pageBits]?.[id & (pageSize - 1)]
    if (found !== undefined) return found
    const bytes = bytesOf(id)
    // Only existing ids are cached, so that made-up ones do not grow the cache.
    if (bytes !== undefined) keep(pages, id, bytes)
    return bytes
  }
}

function keep(pages: (Uint8Array | undefined)[][], id: number, bytes: Uint8Array): void {
  const number = id >> pageBits
  while (pages.length <= number) pages.push([])
  const page = pages[number]!
  if (page.length === 0) for (let slot = 0; slot < pageSize; slot++) page.push(undefined)
  page[id & (pageSize - 1)] = bytes
}

let scratch = Buffer.alloc(1 << 14)

/** Puts the bytes of tokens into `scratch`, where they lie until the next; gives their number. */
function gather(
  ids: ArrayLike<number>,
  bytesOf: (id: number) => Uint8Array | undefined,
  isSkipped: (id: number) => boolean,
): number {
  // Release the memory of a very long text.
  if (scratch.length > 1 << 20) scratch = Buffer.alloc(1 << 14)
  let length = 0
  for (let index = 0; index < ids.length; index++) {
    const id = ids[index]!
    const token = isSkipped(id) ? NO_BYTES : (bytesOf(id) ?? NO_BYTES)
    if (length + token.length > scratch.length) {
      const larger = Buffer.alloc(2 * (length + token.length))
      larger.set(scratch)
      scratch = larger
    }
    for (let at = 0; at < token.length; at++) scratch[length++] = token[at]!
  }
  return length
}

/** Invalid UTF-8 becomes U+FFFD, one for each maximal part; a byte order mark stays. */
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
