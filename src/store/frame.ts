import { crc32 } from 'node:zlib'
import { withoutSecrets } from '../core/process/secrets.ts'

/**
 * A frame: a JSON header with raw arrays behind it, so that what is mostly numbers is stored as
 * numbers. On disk: body length (u32), CRC-32 of the body (u32), header length (u32), header
 * (UTF-8), padding to 8 bytes, then each array, padded to 8. All little-endian.
 */
export interface Frame {
  readonly header: unknown
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

/** Writes a frame as bytes. */
export function encodeFrame(frame: Frame): Buffer {
  const layout = frame.arrays.map(array => [kindOf(array), array.length])
  const header = withoutSecrets(toJson([frame.header, layout]))
  const headerLength = Buffer.byteLength(header)
  const start = pad(4 + headerLength, 8)
  const size = frame.arrays.reduce((sum, array) => sum + pad(array.byteLength, 8), start)
  // Every byte is written below; zeroing all of them first would cost as much as writing them.
  const bytes = Buffer.allocUnsafe(prefixSize + size)
  bytes.writeUInt32LE(headerLength, prefixSize)
  bytes.write(header, prefixSize + 4)
  bytes.fill(0, prefixSize + 4 + headerLength, prefixSize + start)
  let offset = prefixSize + start
  for (const array of frame.arrays) {
    bytes.set(new Uint8Array(array.buffer, array.byteOffset, array.byteLength), offset)
    const end = offset + array.byteLength
    offset += pad(array.byteLength, 8)
    bytes.fill(0, end, offset)
  }
  bytes.writeUInt32LE(size, 0)
  bytes.writeUInt32LE(crc32(bytes.subarray(prefixSize)), 4)
  return bytes
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
  const body = bytes.subarray(prefixSize)
  const fail = (reason: string): never => {
    throw new DamagedFrameError(reason, offset)
  }
  const headerLength = body.readUInt32LE(0)
  if (4 + headerLength > body.length) fail(`header of ${headerLength} bytes in ${body.length}`)
  const [header, layout] = JSON.parse(body.toString('utf8', 4, 4 + headerLength)) as [
    unknown,
    [Kind, number][],
  ]
  let at = pad(4 + headerLength, 8)
  const arrays = layout.map(([kind, length]) => {
    const size = length * kinds[kind].BYTES_PER_ELEMENT
    if (at + size > body.length) fail(`array of ${size} bytes at ${at} in ${body.length}`)
    // Copied, so that an array is aligned and does not keep the whole file in memory.
    const copy = body.buffer.slice(body.byteOffset + at, body.byteOffset + at + size)
    at += pad(size, 8)
    return new kinds[kind](copy as ArrayBuffer)
  })
  return { header, arrays }
}

function kindOf(array: FrameArray): Kind {
  if (array instanceof Int32Array) return 'i'
  if (array instanceof Float32Array) return 'f'
  if (array instanceof Float64Array) return 'd'
  if ((array as unknown) instanceof Uint8Array) return 'b'
  throw new TypeError(`a frame cannot carry a ${(array as object).constructor.name}`)
}

function pad(size: number, to: number): number {
  return Math.ceil(size / to) * to
}

/** Tools may hand over integers beyond 2^53; JSON has no word for them, so they become strings. */
function toJson(value: unknown): string {
  try {
    // Several times as fast as with a function that looks at every value.
    return JSON.stringify(value)
  } catch {
    return JSON.stringify(value, (_key, each: unknown) =>
      typeof each === 'bigint' ? each.toString() : each,
    )
  }
}
