/** Fields of a protobuf message as they are written one behind the other. */
export interface WireWriter {
  /** A text, or the bytes of a tensor or of a message within. */
  bytes(field: number, value: Uint8Array | string): WireWriter
  integer(field: number, value: number): WireWriter
  double(field: number, value: number): WireWriter
  /** Repeated whole numbers, all in one field. */
  packed(field: number, values: readonly number[]): WireWriter
  finish(): Uint8Array
}

const varintKind = 0
const doubleKind = 1
const bytesKind = 2
const floatKind = 5

/** Opens a message to write. */
export function makeWireWriter(): WireWriter {
  const pieces: Uint8Array[] = []
  const writer: WireWriter = {
    bytes(field, value) {
      const bytes = typeof value === 'string' ? Buffer.from(value, 'utf8') : value
      pieces.push(varint(field * 8 + bytesKind), varint(bytes.length), bytes)
      return writer
    },
    integer(field, value) {
      pieces.push(varint(field * 8 + varintKind), varint(value))
      return writer
    },
    double(field, value) {
      const bytes = Buffer.alloc(8)
      bytes.writeDoubleLE(value)
      pieces.push(varint(field * 8 + doubleKind), bytes)
      return writer
    },
    packed: (field, values) => writer.bytes(field, Buffer.concat(values.map(varint))),
    finish: () => Buffer.concat(pieces),
  }
  return writer
}

/** Seven bits a byte, the lowest first; for whole numbers from 0 on. */
function varint(value: number): Uint8Array {
  const bytes: number[] = []
  let left = value
  while (left > 127) {
    bytes.push((left % 128) + 128)
    left = Math.floor(left / 128)
  }
  return Uint8Array.of(...bytes, left)
}

/** The value of a field: a number, or bytes that are a text, a tensor or a message. */
export type WireValue = number | Uint8Array

/** A message that was read: the values of each field, in their order. */
export type WireFields = ReadonlyMap<number, readonly WireValue[]>

/** Reads a message. Unknown fields are kept and ignored. */
export function readWire(bytes: Uint8Array): WireFields {
  const fields = new Map<number, WireValue[]>()
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength)
  let at = 0
  const number = (): number => {
    let value = 0
    for (let scale = 1; ; scale *= 128) {
      const byte = bytes[at++]
      if (byte === undefined || scale > 2 ** 63) throw new Error('protobuf: a number is cut off')
      value += (byte & 127) * scale
      if (byte < 128) return value
    }
  }
  const take = (size: number): number => {
    if (at + size > bytes.length) throw new Error('protobuf: a field is cut off')
    at += size
    return at - size
  }
  const readers: Readonly<Record<number, () => WireValue>> = {
    [varintKind]: number,
    [doubleKind]: () => view.getFloat64(take(8), true),
    [floatKind]: () => view.getFloat32(take(4), true),
    [bytesKind]: () => {
      const size = number()
      const start = take(size)
      return bytes.subarray(start, start + size)
    },
  }
  while (at < bytes.length) {
    const tag = number()
    const read = readers[tag % 8]
    if (!read) throw new Error(`protobuf: field ${Math.floor(tag / 8)} has an unknown kind`)
    const field = Math.floor(tag / 8)
    const values = fields.get(field)
    if (values) values.push(read())
    else fields.set(field, [read()])
  }
  return fields
}

/** The bytes of every value of a field. */
export function bytesOf(fields: WireFields, field: number): readonly Uint8Array[] {
  return (fields.get(field) ?? []).filter(value => value instanceof Uint8Array)
}

/** The last text of a field, or ''. */
export function textOf(fields: WireFields, field: number): string {
  return Buffer.from(bytesOf(fields, field).at(-1) ?? []).toString('utf8')
}

/** The last number of a field, or 0, which is not written. */
export function numberOf(fields: WireFields, field: number): number {
  const value = fields.get(field)?.at(-1)
  return typeof value === 'number' ? value : 0
}

/** Little-endian bytes as an array of their own, wherever they began. */
export function floatsOf(bytes: Uint8Array): Float32Array {
  return new Float32Array(ownBuffer(bytes, 4))
}

/** The 32-bit integers that bytes hold. */
export function intsOf(bytes: Uint8Array): Int32Array {
  return new Int32Array(ownBuffer(bytes, 4))
}

/** The 64-bit integers that bytes hold, which have to be small. */
export function longsOf(bytes: Uint8Array): readonly number[] {
  return Array.from(new BigInt64Array(ownBuffer(bytes, 8)), Number)
}

function ownBuffer(bytes: Uint8Array, size: number): ArrayBuffer {
  if (bytes.length % size !== 0) throw new Error('protobuf: a tensor is cut off')
  return new Uint8Array(bytes).buffer
}

/** The bytes of numbers in memory order. */
export function rawBytes(numbers: Int32Array | Float32Array): Uint8Array {
  return new Uint8Array(numbers.buffer, numbers.byteOffset, numbers.byteLength)
}

/** Integers as 64-bit ones. */
export function longBytes(numbers: ArrayLike<number>): Uint8Array {
  return new Uint8Array(BigInt64Array.from(Array.from(numbers), BigInt).buffer)
}
