import type { GrowingBytes } from './growing-bytes.ts'

const blockSize = 128
const parts = 4
const partSize = blockSize / parts

/**
 * Appends integers in Parquet's DELTA_BINARY_PACKED form: the difference of each to the one before, less the least
 * difference of its block, in as many bits as the widest needs. Those are 8, 16, 20 or 32, which are packed without a
 * branch per number; token ids of all vocabularies up to 2^19 take 20, and any other number would save a tenth of the bytes
 * for twice the time. Differences wrap around at 32 bits, as the format says.
 */
export function packDeltas(values: Int32Array, output: GrowingBytes): void {
  output.varint(blockSize)
  output.varint(parts)
  output.varint(values.length)
  output.zigzag(values.length > 0 ? values[0]! : 0)
  output.reserve(Math.ceil(values.length / blockSize) * (8 + parts + blockSize * 4))
  const { bytes } = output
  const target = new DataView(bytes.buffer, bytes.byteOffset, bytes.length)
  const deltas = new Int32Array(blockSize)
  for (let start = 1; start < values.length; start += blockSize) {
    const count = Math.min(blockSize, values.length - start)
    const { least, width } = fillDeltas(deltas, values.subarray(start - 1, start + count))
    output.zigzag(least)
    const used = Math.ceil(count / partSize)
    for (let part = 0; part < parts; part++) bytes[output.length++] = part < used ? width : 0
    const packed = { deltas, end: used * partSize, least }
    output.length = packBlock(packed, width, { target, at: output.length })
  }
}

type Width = 0 | 8 | 16 | 20 | 32

/** Computes the differences of a block from its values and the one before them. */
function fillDeltas(
  deltas: Int32Array,
  values: Int32Array,
): { readonly least: number; readonly width: Width } {
  let least = 0x7fffffff
  let most = -0x80000000
  let before = values[0]!
  for (let index = 1; index < values.length; index++) {
    const value = values[index]!
    const delta = (value - before) | 0
    deltas[index - 1] = delta
    least = Math.min(least, delta)
    most = Math.max(most, delta)
    before = value
  }
  deltas.fill(least, values.length - 1)
  return { least, width: widthOf((most - least) | 0) }
}

function widthOf(bits: number): Width {
  if (bits === 0) return 0
  if (bits >>> 8 === 0) return 8
  if (bits >>> 16 === 0) return 16
  return bits >>> 20 === 0 ? 20 : 32
}

interface Packed {
  readonly deltas: Int32Array
  readonly end: number
  readonly least: number
}

interface Target {
  readonly target: DataView
  readonly at: number
}

/** Lays the differences side by side; gives the place after them. */
function packBlock({ deltas, end, least }: Packed, width: Width, { target, at }: Target): number {
  let next = at
  switch (width) {
    case 0:
      break
    case 8:
      for (let index = 0; index < end; index++) target.setInt8(next++, deltas[index]! - least)
      break
    case 16:
      for (let index = 0; index < end; index++, next += 2) {
        target.setInt16(next, deltas[index]! - least, true)
      }
      break
    case 20:
      return packTwenty({ deltas, end, least }, { target, at })
    case 32:
      for (let index = 0; index < end; index++, next += 4) {
        target.setInt32(next, deltas[index]! - least, true)
      }
  }
  return next
}

/** Eight numbers of 20 bits are five words. */
function packTwenty({ deltas, end, least }: Packed, { target, at }: Target): number {
  let next = at
  for (let index = 0; index < end; index += 8, next += 20) {
    const second = (deltas[index + 1]! - least) | 0
    const fourth = (deltas[index + 3]! - least) | 0
    const fifth = (deltas[index + 4]! - least) | 0
    const seventh = (deltas[index + 6]! - least) | 0
    const third = (deltas[index + 2]! - least) << 8
    const sixth = (deltas[index + 5]! - least) << 4
    target.setInt32(next, (deltas[index]! - least) | (second << 20), true)
    target.setInt32(next + 4, (second >>> 12) | third | (fourth << 28), true)
    target.setInt32(next + 8, (fourth >>> 4) | (fifth << 16), true)
    target.setInt32(next + 12, (fifth >>> 16) | sixth | (seventh << 24), true)
    target.setInt32(next + 16, (seventh >>> 8) | ((deltas[index + 7]! - least) << 12), true)
  }
  return next
}
