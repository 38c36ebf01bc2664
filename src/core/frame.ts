import { crc32 } from 'node:zlib'

/**
 * A frame: a JSON header with raw arrays behind it, so that what is mostly numbers is stored as
 * numbers. On disk: body length (u32), CRC-32 of the body (u32), header length (u32), header
 * (UTF-8), padding to 4 bytes, then each array, padded to 8. All little-endian.
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
const prefix = 8

/** Why a file of frames could not be read on. */
export class DamagedFrameError extends Error {
  override name = 'DamagedFrameError'
  readonly offset: number
  /** Whether only the last frame is unfinished, as a crash leaves it: all before it is whole. */
  readonly isTorn: boolean

  constructor(reason: string, place: { readonly offset: number; readonly isTorn: boolean }) {
    super(
      `${place.isTorn ? 'torn last frame' : 'damaged frame'} at byte ${place.offset}: ${reason}`,
    )
    this.offset = place.offset
    this.isTorn = place.isTorn
  }
}

/** Writes a frame as bytes. */
export function encodeFrame(frame: Frame): Buffer {
  const layout = frame.arrays.map(array => [kindOf(array), array.length])
  const header = Buffer.from(JSON.stringify([frame.header, layout], keepJson))
  const start = pad(4 + header.length, 8)
  const size = frame.arrays.reduce((sum, array) => sum + pad(array.byteLength, 8), start)
  const bytes = Buffer.alloc(prefix + size)
  bytes.writeUInt32LE(header.length, prefix)
  header.copy(bytes, prefix + 4)
  let offset = prefix + start
  for (const array of frame.arrays) {
    bytes.set(new Uint8Array(array.buffer, array.byteOffset, array.byteLength), offset)
    offset += pad(array.byteLength, 8)
  }
  bytes.writeUInt32LE(size, 0)
  bytes.writeUInt32LE(crc32(bytes.subarray(prefix)), 4)
  return bytes
}

/** How many bytes the frame at `offset` has, or `undefined` if its length is not all there yet. */
export function frameSize(bytes: Buffer, offset: number): number | undefined {
  if (offset + prefix > bytes.length) return undefined
  const size = bytes.readUInt32LE(offset)
  if (size < 4 || size > longestBody) {
    throw new DamagedFrameError(`a length of ${size} bytes is not possible`, {
      offset,
      isTorn: false,
    })
  }
  return prefix + size
}

/** Reads the frame that fills `bytes`; `offset` is where it lies in its file, for errors. */
export function decodeFrame(bytes: Buffer, offset: number): Frame {
  const body = bytes.subarray(prefix)
  const expected = bytes.readUInt32LE(4)
  const actual = crc32(body)
  const fail = (reason: string): never => {
    throw new DamagedFrameError(reason, { offset, isTorn: false })
  }
  if (expected !== actual) fail(`checksum is ${actual.toString(16)}, not ${expected.toString(16)}`)
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

/** Reads all frames of a whole file; throws `DamagedFrameError` after the last good one. */
export function* decodeFrames(bytes: Buffer, from = 0): Generator<{ frame: Frame; end: number }> {
  let offset = from
  while (offset < bytes.length) {
    const size = frameSize(bytes, offset)
    if (size === undefined || offset + size > bytes.length) {
      const missing =
        size === undefined ? 'its length is cut' : `${bytes.length - offset} of ${size} bytes`
      throw new DamagedFrameError(missing, { offset, isTorn: true })
    }
    const frame = decodeLast(
      bytes.subarray(offset, offset + size),
      offset,
      offset + size === bytes.length,
    )
    offset += size
    yield { frame, end: offset }
  }
}

function decodeLast(bytes: Buffer, offset: number, isLast: boolean): Frame {
  try {
    return decodeFrame(bytes, offset)
  } catch (error) {
    if (!isLast || !(error instanceof DamagedFrameError)) throw error
    throw new DamagedFrameError(error.message, { offset, isTorn: true })
  }
}

function kindOf(array: FrameArray): Kind {
  const found = (Object.keys(kinds) as Kind[]).find(kind => array instanceof kinds[kind])
  if (!found) throw new TypeError(`a frame cannot carry a ${array.constructor.name}`)
  return found
}

function pad(size: number, to: number): number {
  return Math.ceil(size / to) * to
}

/** Tools may hand over integers beyond 2^53; JSON has no word for them. */
function keepJson(_key: string, value: unknown): unknown {
  return typeof value === 'bigint' ? value.toString() : value
}
