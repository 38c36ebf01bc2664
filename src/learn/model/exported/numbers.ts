/** How numbers are written: whole floats, halves of two kinds, or bytes with a scale per 32 numbers. */
export const numberTypes = ['f32', 'bf16', 'f16', 'q8_0'] as const

export type NumberType = (typeof numberTypes)[number]

/** Numbers of a block of bytes with a scale, and its bytes. */
export const q8Block = { numbers: 32, bytes: 34 } as const

/** The bytes of so many numbers. */
export function bytesOf(count: number, type: NumberType): number {
  if (type === 'q8_0') return (count / q8Block.numbers) * q8Block.bytes
  return type === 'f32' ? 4 * count : 2 * count
}

/** Numbers as a file has them, each rounded to the nearest that its type knows. */
export function encode(numbers: Float32Array, type: NumberType): Uint8Array {
  if (type === 'q8_0') return toBytes(numbers)
  if (type === 'f32') return new Uint8Array(numbers.buffer, numbers.byteOffset, numbers.byteLength)
  const words = new Uint32Array(numbers.buffer, numbers.byteOffset, numbers.length)
  const halves = new Uint16Array(numbers.length)
  const round = type === 'bf16' ? toBrainHalf : toHalf
  for (let at = 0; at < halves.length; at++) halves[at] = round(words[at]!)
  return new Uint8Array(halves.buffer)
}

/** The upper half of a float's bits, ties to even. */
function toBrainHalf(word: number): number {
  return (word + 0x7fff + ((word >>> 16) & 1)) >>> 16
}

const one = new Float32Array(1)
const bits = new Uint32Array(one.buffer)

/** The nearest half of a float's bits, ties to even; too large ones become the largest. */
export function toHalf(word: number): number {
  const sign = (word >>> 16) & 0x8000
  const size = word & 0x7fff_ffff
  if (size >= 0x477f_f000) return sign | 0x7bff
  if (size >= 0x3880_0000) return sign | ((size - 0x3800_0000 + 0xfff + ((size >>> 13) & 1)) >>> 13)
  // Small halves are multiples of 2^-24: a float of 0.5 more has just these bits left.
  bits[0] = size
  one[0]! += 0.5
  return sign | (bits[0]! - 0x3f00_0000)
}

/** Blocks of 32 whole numbers from -127 to 127 behind their scale, as llama.cpp rounds them. */
function toBytes(numbers: Float32Array): Uint8Array {
  const blocks = numbers.length / q8Block.numbers
  const out = new Uint8Array(blocks * q8Block.bytes)
  for (let block = 0; block < blocks; block++) {
    const from = block * q8Block.numbers
    let largest = 0
    for (let at = from; at < from + 32; at++) largest = Math.max(largest, Math.abs(numbers[at]!))
    const scale = Math.fround(largest / 127)
    const inverse = scale === 0 ? 0 : Math.fround(1 / scale)
    one[0] = scale
    const half = toHalf(bits[0]!)
    const to = block * q8Block.bytes
    out[to] = half & 255
    out[to + 1] = half >>> 8
    for (let at = 0; at < 32; at++) {
      const value = Math.fround(numbers[from + at]! * inverse)
      out[to + 2 + at] = Math.sign(value) * Math.floor(Math.abs(value) + 0.5)
    }
  }
  return out
}
