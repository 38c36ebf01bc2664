import { crc32 } from 'node:zlib'
import { withoutSecrets, withoutSecretsInJson } from '../../base/core/process/secrets.ts'
import { type LeftOut, Lifting, putTexts } from './long-texts.ts'

/**
 * A frame: a JSON header with raw arrays behind it, so that what is mostly numbers is stored as
 * numbers. On disk: body length (u32), CRC-32 of the body (u32), header length (u32), header
 * (UTF-8), padding to 8 bytes, then each array, padded to 8. All little-endian. Long texts of the
 * header lie behind the arrays, as they are.
 */
export interface Frame {
  readonly header: unknown
  readonly arrays: readonly FrameArray[]
}

/** A frame whose header is JSON already, from a writer that knows its shape and where its long texts are. */
export interface WrittenFrame {
  readonly json: string
  readonly leftOut: LeftOut
  readonly arrays: readonly FrameArray[]
}

/** The arrays a frame can carry. */
export type FrameArray = Int32Array | Float32Array | Float64Array | Uint8Array

const kinds = { i: Int32Array, f: Float32Array, d: Float64Array, b: Uint8Array } as const
type Kind = keyof typeof kinds

/** Frames longer than this are taken for damage: no length field is trusted further. */
const longestBody = 1 << 30
/** Bytes before the body of a frame: its length and its checksum. */
export const prefixSize = 8

/** Bytes that are not a frame. */
export class DamagedFrameError extends Error {
  override name = 'DamagedFrameError'
  /** What is wrong with them, without the place. */
  readonly reason: string

  constructor(reason: string, offset: number) {
    super(`damaged frame at byte ${offset}: ${reason}`)
    this.reason = reason
  }
}

/** Writes a frame as bytes, in separate memory that can be transferred to another thread. */
export function encodeFrame(frame: Frame | WrittenFrame): Buffer {
  single ??= makeFrameBuffer()
  single.clear()
  const bytes = Buffer.allocUnsafeSlow(single.add(frame))
  single.bytes().copy(bytes)
  return bytes
}

/** The buffer in which single frames are built. */
let single: FrameBuffer | undefined

/** Frames one behind another, in memory that is used again once they are written. */
export interface FrameBuffer {
  /** Appends a frame; returns its size. A frame that cannot be encoded throws and leaves nothing behind. */
  add(frame: Frame | WrittenFrame): number
  /** Appends a frame that is bytes already; returns its size. */
  addBytes(frame: Buffer): number
  /** The bytes since the last clear; valid until the next. */
  bytes(): Buffer
  /** How many these are. */
  readonly size: number
  clear(): void
}

/** Memory above this is released after use. */
const mostKept = 4 << 20

/** Opens a reusable buffer of frames: allocating memory for every frame costs more than filling it. */
export function makeFrameBuffer(size = 1 << 16): FrameBuffer {
  let memory = memoryOf(size)
  let end = 0
  const reserve = (more: number): void => {
    const { bytes } = memory
    if (end + more <= bytes.length) return
    memory = memoryOf(Math.max(2 * bytes.length, end + more))
    bytes.copy(memory.bytes, 0, 0, end)
  }
  return {
    add(frame) {
      const parts = partsOf(frame)
      // Reserve three bytes per character, the maximum: counting them would need another pass.
      reserve(prefixSize + 8 + 3 * parts.header.length + parts.size)
      const size = fill(memory, end, parts)
      end += size
      return size
    },
    addBytes(frame) {
      reserve(frame.length)
      frame.copy(memory.bytes, end)
      end += frame.length
      return frame.length
    },
    bytes: () => memory.bytes.subarray(0, end),
    get size() {
      return end
    },
    clear() {
      end = 0
      if (memory.bytes.length > mostKept) memory = memoryOf(size)
    },
  }
}

/** Memory of a buffer, as bytes and as numbers: arrays of a frame are copied without a view of each. */
interface Memory {
  readonly bytes: Buffer
  readonly ints: Int32Array
  readonly floats: Float32Array
}

function memoryOf(size: number): Memory {
  const bytes = Buffer.allocUnsafeSlow(pad(size, 8))
  const { buffer, byteOffset, length } = bytes
  return {
    bytes,
    ints: new Int32Array(buffer, byteOffset, length / 4),
    floats: new Float32Array(buffer, byteOffset, length / 4),
  }
}

/** A frame that is about to be written. */
interface FrameParts {
  readonly header: string
  readonly arrays: readonly FrameArray[]
  readonly texts: readonly string[]
  /** Bytes of its arrays and texts. */
  readonly size: number
}

function partsOf(frame: Frame | WrittenFrame): FrameParts {
  const { json, leftOut, arrays } = 'json' in frame ? frame : writtenFrame(frame)
  const texts = leftOut.texts.map(withoutSecrets)
  let size = 0
  const layout: string[] = []
  for (const array of arrays) {
    layout.push(layoutOf(kindOf(array), array.length))
    size += pad(array.byteLength, 8)
  }
  for (const text of texts) {
    const length = Buffer.byteLength(text)
    layout.push(layoutOf('t', length))
    size += pad(length, 8)
  }
  const places = texts.length === 0 ? '' : `,${JSON.stringify(leftOut.places)}`
  const header = withoutSecretsInJson(`[${json},[${layout.join()}]${places}]`)
  return { header, arrays, texts, size }
}

/** Layouts of short arrays, which come again in every frame, by their kinds and lengths. */
const layouts: Record<Kind | 't', string[]> = { i: [], f: [], d: [], b: [], t: [] }
const mostLayouts = 1024

function layoutOf(kind: Kind | 't', length: number): string {
  if (length >= mostLayouts) return `["${kind}",${length}]`
  const known = layouts[kind]
  known[length] ??= `["${kind}",${length}]`
  return known[length]
}

function writtenFrame({ header, arrays }: Frame): WrittenFrame {
  const leftOut = new Lifting()
  return { json: toJson(leftOut.lift(header)), leftOut, arrays }
}

/** Writes a frame at a place where there is room for it; gives its size. */
function fill(memory: Memory, at: number, { header, arrays, texts }: FrameParts): number {
  const { bytes } = memory
  const body = at + prefixSize
  let offset = body + 4
  const padded = (length: number): void => {
    const end = offset + length
    offset = body + pad(end - body, 8)
    for (let zero = end; zero < offset; zero++) bytes[zero] = 0
  }
  const headerLength = bytes.write(header, offset)
  bytes.writeUInt32LE(headerLength, body)
  padded(headerLength)
  for (const array of arrays) {
    copyArray(array, memory, offset)
    padded(array.byteLength)
  }
  for (const text of texts) padded(bytes.write(text, offset))
  bytes.writeUInt32LE(offset - body, at)
  bytes.writeUInt32LE(crc32(bytes.subarray(body, offset)), at + 4)
  return offset - at
}

function copyArray(array: FrameArray, { bytes, ints, floats }: Memory, offset: number): void {
  if (offset % 4 === 0 && array instanceof Int32Array) ints.set(array, offset / 4)
  else if (offset % 4 === 0 && array instanceof Float32Array) floats.set(array, offset / 4)
  else bytes.set(new Uint8Array(array.buffer, array.byteOffset, array.byteLength), offset)
}

/** How many bytes the frame at `offset` has, or `undefined` if its length is not all there yet. */
export function frameSize(bytes: Buffer, offset: number): number | undefined {
  if (offset + prefixSize > bytes.length) return undefined
  const size = bytes.readUInt32LE(offset)
  if (size < 4 || size > longestBody) {
    throw new DamagedFrameError(`a length of ${size} bytes is not possible`, offset)
  }
  return prefixSize + size
}

/** Compares the frame that fills `bytes` with its checksum; `offset` is its place, for the error. */
export function checkFrame(bytes: Buffer, offset: number): void {
  const expected = bytes.readUInt32LE(4)
  const actual = crc32(bytes.subarray(prefixSize))
  if (expected === actual) return
  const reason = `checksum is ${actual.toString(16)}, not ${expected.toString(16)}`
  throw new DamagedFrameError(reason, offset)
}

/** Reads the frame that fills `bytes`; `offset` is where it lies in its file, for errors. */
export function decodeFrame(bytes: Buffer, offset: number): Frame {
  checkFrame(bytes, offset)
  // Copied, so that an array is aligned and does not keep the whole file in memory.
  return readBody(bytes, offset, (memory, from, size) => [memory.slice(from, from + size), 0])
}

/**
 * Reads a frame that another thread wrote into separate memory; its arrays are views, not copies.
 */
export function viewFrame(bytes: Buffer): Frame {
  return readBody(bytes, 0, (memory, from) => [memory, from])
}

function readBody(
  bytes: Buffer,
  offset: number,
  take: (memory: ArrayBufferLike, from: number, size: number) => [ArrayBufferLike, number],
): Frame {
  const body = bytes.subarray(prefixSize)
  const fail = (reason: string): never => {
    throw new DamagedFrameError(reason, offset)
  }
  const headerLength = body.readUInt32LE(0)
  if (4 + headerLength > body.length) fail(`header of ${headerLength} bytes in ${body.length}`)
  const [header, layout, places] = JSON.parse(body.toString('utf8', 4, 4 + headerLength)) as [
    unknown,
    [Kind | 't', number][],
    unknown,
  ]
  let at = pad(4 + headerLength, 8)
  const arrays: FrameArray[] = []
  const texts: string[] = []
  for (const [kind, length] of layout) {
    const size = kind === 't' ? length : length * kinds[kind].BYTES_PER_ELEMENT
    if (!(size >= 0) || at + size > body.length) {
      fail(`${kind === 't' ? 'text' : 'array'} of ${size} bytes at ${at} in ${body.length}`)
    }
    if (kind === 't') texts.push(body.toString('utf8', at, at + size))
    else {
      const [memory, from] = take(body.buffer, body.byteOffset + at, size)
      arrays.push(new kinds[kind](memory as ArrayBuffer, from, length))
    }
    at += pad(size, 8)
  }
  return { header: texts.length === 0 ? header : putTexts(header, texts, places), arrays }
}

function kindOf(array: FrameArray): Kind {
  if (array instanceof Int32Array) return 'i'
  if (array instanceof Float32Array) return 'f'
  if (array instanceof Float64Array) return 'd'
  if ((array as unknown) instanceof Uint8Array) return 'b'
  throw new TypeError(`a frame cannot carry a ${(array as object).constructor.name}`)
}

function pad(size: number, to: number): number {
  return size + ((to - (size % to)) % to)
}

/** What a tool was called with may have bigints or contain itself, which JSON cannot: both become texts. */
export function toJson(value: unknown): string {
  try {
    // Without a replacer, which is several times as fast.
    return JSON.stringify(value)
  } catch {
    return JSON.stringify(value, withoutCircles())
  }
}

function withoutCircles(): (this: unknown, key: string, each: unknown) => unknown {
  const around: unknown[] = []
  return function replace(_key, each) {
    if (typeof each === 'bigint') return each.toString()
    if (typeof each !== 'object' || each === null) return each
    while (around.length > 0 && around.at(-1) !== this) around.pop()
    if (around.includes(each)) return '[itself]'
    around.push(each)
    return each
  }
}
