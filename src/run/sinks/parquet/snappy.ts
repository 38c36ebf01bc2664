import type { GrowingBytes } from './growing-bytes.ts'

/** Copies reach back at most so far, since each block is compressed on its own. */
const blockSize = 1 << 16
const tableBits = 14
const table = new Uint16Array(1 << tableBits)

/** Where four bytes were last seen: their place in the table. */
const hashOf = (word: number): number => Math.imul(word, 0x1e35a7bd) >>> (32 - tableBits)

/** Appends bytes in Snappy's form: literals, and copies of what came before. */
export function compressBytes(input: Uint8Array, output: GrowingBytes): void {
  const target = beginSnappy(input.length, output)
  const source = new DataView(input.buffer, input.byteOffset, input.length)
  for (let start = 0; start < input.length; start += blockSize) {
    const end = Math.min(start + blockSize, input.length)
    output.length = compressBlock({ source, start, end }, target, output.length)
  }
}

/** Begins with the length before compression, and makes room for the worst case. */
function beginSnappy(length: number, output: GrowingBytes): DataView {
  output.varint(length)
  output.reserve(64 + length + Math.ceil(length / 6))
  const { buffer, byteOffset, length: room } = output.bytes
  return new DataView(buffer, byteOffset, room)
}

interface Block {
  readonly source: DataView
  readonly start: number
  readonly end: number
}

/**
 * Writes one block from `from` on, and gives the place after it. Every position is looked up by its next four bytes; the
 * longer none was found, the larger the steps, so that what cannot be compressed costs little.
 */
function compressBlock({ source, start, end }: Block, target: DataView, from: number): number {
  // So far before the end, sixteen bytes can be read and copied at once.
  const limit = end - 16
  let at = from
  let literal = start
  let position = start + 1
  table.fill(0)
  while (position <= limit) {
    let tries = 32
    let word = source.getInt32(position, true)
    let hash = hashOf(word)
    let candidate = start + table[hash]!
    while (source.getInt32(candidate, true) !== word) {
      table[hash] = position - start
      position += tries++ >>> 5
      if (position > limit) return putLiteral({ source, start: literal, end }, target, at)
      word = source.getInt32(position, true)
      hash = hashOf(word)
      candidate = start + table[hash]!
    }
    if (position - literal <= 16)
      at = putShort({ source, start: literal, end: position }, target, at)
    else at = putLiteral({ source, start: literal, end: position }, target, at)
    // One match often follows another.
    do {
      table[hash] = position - start
      const length = matchLength({ source, start: position, end }, candidate)
      at = putCopy(position - candidate, length, { target, at })
      position += length
      if (position > limit) break
      table[hashOf(source.getInt32(position - 1, true))] = position - 1 - start
      word = source.getInt32(position, true)
      hash = hashOf(word)
      candidate = start + table[hash]!
    } while (source.getInt32(candidate, true) === word)
    literal = position
  }
  return putLiteral({ source, start: literal, end }, target, at)
}

/** How many bytes from `start` are those from `candidate` on, of which four are known to be. */
function matchLength({ source, start, end }: Block, candidate: number): number {
  let length = 4
  for (; start + length + 4 <= end; length += 4) {
    const ours = source.getInt32(start + length, true)
    const difference = ours ^ source.getInt32(candidate + length, true)
    if (difference !== 0) return length + ((31 - Math.clz32(difference & -difference)) >>> 3)
  }
  while (
    start + length < end &&
    source.getUint8(start + length) === source.getUint8(candidate + length)
  ) {
    length++
  }
  return length
}

/** At most sixteen bytes, none among them; up to sixteen are read and written. */
function putShort({ source, start, end }: Block, target: DataView, at: number): number {
  const size = end - start
  if (size === 0) return at
  target.setUint8(at, (size - 1) << 2)
  for (let byte = 0; byte < size; byte += 4) {
    target.setInt32(at + 1 + byte, source.getInt32(start + byte, true), true)
  }
  return at + 1 + size
}

/** The bytes of a block as they are. There must be room. */
function putLiteral({ source, start, end }: Block, target: DataView, from: number): number {
  if (start === end) return from
  let at = putSize(end - start - 1, target, from)
  let byte = start
  for (; byte + 4 <= end; byte += 4, at += 4) target.setInt32(at, source.getInt32(byte, true), true)
  for (; byte < end; byte++) target.setUint8(at++, source.getUint8(byte))
  return at
}

function putSize(size: number, target: DataView, from: number): number {
  let at = from
  if (size < 60) {
    target.setUint8(at++, size << 2)
    return at
  }
  const wide = size < 1 << 8 ? 1 : size < 1 << 16 ? 2 : size < 1 << 24 ? 3 : 4
  target.setUint8(at++, (59 + wide) << 2)
  for (let byte = 0; byte < wide; byte++) target.setUint8(at++, (size >>> (8 * byte)) & 0xff)
  return at
}

/** `size` bytes that lie `offset` bytes back; there must be room. */
function putCopy(
  offset: number,
  size: number,
  { target, at: from }: { readonly target: DataView; readonly at: number },
): number {
  let at = from
  let rest = size
  while (rest > 64) {
    // At least four bytes are left for the last copy.
    const part = rest < 68 ? 60 : 64
    target.setUint8(at, ((part - 1) << 2) | 2)
    target.setUint16(at + 1, offset, true)
    at += 3
    rest -= part
  }
  if (rest < 12 && offset < 2048) {
    target.setUint8(at, ((offset >>> 8) << 5) | ((rest - 4) << 2) | 1)
    target.setUint8(at + 1, offset & 0xff)
    return at + 2
  }
  target.setUint8(at, ((rest - 1) << 2) | 2)
  target.setUint16(at + 1, offset, true)
  return at + 3
}

/** Runs of fewer words than this stay literal. */
const shortestRun = 4

/**
 * Appends numbers of 4 or 8 bytes in Snappy's form, of which only repetitions of the number before become copies. Columns
 * of numbers hold long runs of one value, such as 0 for every token that was not sampled; between those nothing repeats,
 * and looking for it would cost ten times as much.
 */
export function compressRuns(words: Int32Array, stride: 1 | 2, output: GrowingBytes): void {
  const target = beginSnappy(words.byteLength, output)
  const input = new Uint8Array(words.buffer, words.byteOffset, words.byteLength)
  let at = output.length
  let literal = 0
  const putWords = (end: number): void => {
    if (end === literal) return
    at = putSize((end - literal) * 4 - 1, target, at)
    output.bytes.set(input.subarray(literal * 4, end * 4), at)
    at += (end - literal) * 4
  }
  for (let word: number = stride; word < words.length; word++) {
    if (words[word] !== words[word - stride]) continue
    const end = runEnd(words, word, stride)
    if (end - word >= shortestRun) {
      putWords(word)
      at = putCopy(stride * 4, (end - word) * 4, { target, at })
      literal = end
    }
    word = end
  }
  putWords(words.length)
  output.length = at
}

/** The first word from `start` that differs from the one a stride before it. */
function runEnd(words: Int32Array, start: number, stride: number): number {
  let end = start + 1
  while (end < words.length && words[end] === words[end - stride]) end++
  return end
}
