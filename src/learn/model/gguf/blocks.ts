import { widen } from '../safetensors-file.ts'
import type { WeightType } from '../weights-file.ts'

/** How a type of GGUF stores numbers: some at a time, in a block of bytes. */
export interface BlockType {
  readonly name: string
  /** Numbers per block. */
  readonly numbers: number
  /** Bytes per block. */
  readonly bytes: number
  /** What its numbers are once they are read. */
  readonly type: WeightType
  /** Writes the numbers of whole blocks, rounded to floats in the order in which `gguf` computes them; storing rounds the last time. */
  unpack(bytes: Buffer, target: Float32Array): void
}

const { fround } = Math

/** Every half as a float: scales are looked up, millions of them. */
const halfValues = new Float32Array(2 ** 16)
widen(
  Uint16Array.from(halfValues, (_, half) => half),
  'f16',
  halfValues,
)

const halfAt = (bytes: Buffer, at: number): number =>
  halfValues[bytes[at]! | (bytes[at + 1]! << 8)]!

function halves(type: 'f16' | 'bf16'): BlockType {
  return {
    ...{ name: type.toUpperCase(), numbers: 1, bytes: 2, type },
    unpack(bytes, target) {
      const read = Uint16Array.from(target, (_, at) => bytes.readUInt16LE(at * 2))
      widen(read, type, target)
    },
  }
}

/** A type of blocks, unpacked one by one from `at` on into `target` from `to` on. */
function quantised(
  name: string,
  size: Pick<BlockType, 'numbers' | 'bytes'>,
  one: (bytes: Buffer, at: number, target: Float32Array, to: number) => void,
): BlockType {
  return {
    ...{ name, type: 'f32', ...size },
    unpack(bytes, target) {
      for (let block = 0; block * size.numbers < target.length; block++) {
        one(bytes, block * size.bytes, target, block * size.numbers)
      }
    },
  }
}

/** Blocks of 32 with a scale; the lower halves of 16 bytes are the first numbers, the upper ones the others. */
const small = (bytes: number) => ({ numbers: 32, bytes }) as const

const q4Of0 = quantised('Q4_0', small(18), (bytes, at, target, to) => {
  const scale = halfAt(bytes, at)
  for (let index = 0; index < 16; index++) {
    const pair = bytes[at + 2 + index]!
    target[to + index] = scale * ((pair & 15) - 8)
    target[to + index + 16] = scale * ((pair >> 4) - 8)
  }
})

const q4Of1 = quantised('Q4_1', small(20), (bytes, at, target, to) => {
  const scale = halfAt(bytes, at)
  const least = halfAt(bytes, at + 2)
  for (let index = 0; index < 16; index++) {
    const pair = bytes[at + 4 + index]!
    target[to + index] = fround(scale * (pair & 15)) + least
    target[to + index + 16] = fround(scale * (pair >> 4)) + least
  }
})

const q8Of0 = quantised('Q8_0', small(34), (bytes, at, target, to) => {
  const scale = halfAt(bytes, at)
  for (let index = 0; index < 32; index++)
    target[to + index] = scale * ((bytes[at + 2 + index]! << 24) >> 24)
})

/** The scale and the least value of a group of 32 numbers, six bits each, of eight groups in twelve bytes. */
function sixBits(
  bytes: Buffer,
  at: number,
  group: number,
): readonly [scale: number, least: number] {
  if (group < 4) return [bytes[at + group]! & 63, bytes[at + group + 4]! & 63]
  const low = bytes[at + group + 4]!
  return [
    (low & 15) | ((bytes[at + group - 4]! >> 6) << 4),
    (low >> 4) | ((bytes[at + group]! >> 6) << 4),
  ]
}

const q4OfK = quantised('Q4_K', { numbers: 256, bytes: 144 }, (bytes, at, target, to) => {
  const scale = halfAt(bytes, at)
  const least = halfAt(bytes, at + 2)
  for (let group = 0; group < 8; group++) {
    const [own, ownLeast] = sixBits(bytes, at + 4, group)
    const [by, less] = [fround(scale * own), fround(least * ownLeast)]
    const from = at + 16 + 32 * (group >> 1)
    for (let index = 0; index < 32; index++) {
      const pair = bytes[from + index]!
      const nibble = group % 2 === 0 ? pair & 15 : pair >> 4
      target[to + group * 32 + index] = fround(by * nibble) - less
    }
  }
})

const q6OfK = quantised('Q6_K', { numbers: 256, bytes: 210 }, (bytes, at, target, to) => {
  const scale = halfAt(bytes, at + 208)
  for (let index = 0; index < 256; index++) {
    const [half, within] = [index >> 7, index & 127]
    const low = bytes[at + half * 64 + (within & 63)]! >> (within < 64 ? 0 : 4)
    const high = bytes[at + 128 + half * 32 + (within & 31)]! >> (2 * (within >> 5))
    const by = fround(scale * bytes.readInt8(at + 192 + (index >> 4)))
    target[to + index] = by * (((low & 15) | ((high & 3) << 4)) - 32)
  }
})

const plain: BlockType = {
  ...{ name: 'F32', numbers: 1, bytes: 4, type: 'f32' },
  unpack(bytes, target) {
    for (let at = 0; at < target.length; at++) target[at] = bytes.readFloatLE(at * 4)
  },
}

/** The types that are read, by their number in the format. */
export const blockTypes: ReadonlyMap<number, BlockType> = new Map([
  [0, plain],
  [1, halves('f16')],
  [2, q4Of0],
  [3, q4Of1],
  [8, q8Of0],
  [12, q4OfK],
  [14, q6OfK],
  [30, halves('bf16')],
])

/** Names of the others, for errors. */
export const otherTypes: Readonly<Record<number, string>> = {
  ...{ 6: 'Q5_0', 7: 'Q5_1', 9: 'Q8_1', 10: 'Q2_K', 11: 'Q3_K', 13: 'Q5_K', 15: 'Q8_K' },
  ...{ 16: 'IQ2_XXS', 17: 'IQ2_XS', 18: 'IQ3_XXS', 19: 'IQ1_S', 20: 'IQ4_NL', 21: 'IQ3_S' },
  ...{ 22: 'IQ2_S', 23: 'IQ4_XS', 24: 'I8', 25: 'I16', 26: 'I32', 27: 'I64', 28: 'F64' },
  ...{ 29: 'IQ1_M', 34: 'TQ1_0', 35: 'TQ2_0', 39: 'MXFP4' },
}
