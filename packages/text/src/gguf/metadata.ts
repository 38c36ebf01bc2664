import { closeSync, fstatSync, openSync, readSync } from 'node:fs'

/** A fact of a GGUF file: a number, a text, a truth, or a list of them. */
export type Fact = number | string | boolean | readonly (number | string | boolean)[]

/** What a GGUF file says of a tensor. */
export interface StoredTensor {
  readonly name: string
  /** Row-major, outermost first: the format itself has them innermost first. */
  readonly shape: readonly number[]
  /** The number of its type in the format. */
  readonly type: number
  /** Where its numbers begin in the file. */
  readonly start: number
}

/** The header of a GGUF file: what it says of its model, and where its tensors lie. */
export interface GgufHeader {
  readonly path: string
  readonly size: number
  readonly facts: ReadonlyMap<string, Fact>
  readonly tensors: readonly StoredTensor[]
}

/** The most of each that is read: several times what the largest published models have. */
const most = {
  header: 512 * 2 ** 20,
  facts: 4096,
  tensors: 2 ** 16,
  items: 2 ** 22,
  text: 2 ** 24,
  dimensions: 4,
} as const

/** Whether a path names a GGUF file. */
export function isGgufPath(path: string): boolean {
  return path.toLowerCase().endsWith('.gguf')
}

/** Reads the header of a GGUF file; a file that is damaged or means harm is refused, never believed. */
export function readGgufHeader(path: string): GgufHeader {
  const file = openSync(path, 'r')
  try {
    const { size } = fstatSync(file)
    return readHeader(makeReader(path, file, size), path, size)
  } finally {
    closeSync(file)
  }
}

function readHeader(reader: Reader, path: string, size: number): GgufHeader {
  if (size < 24 || reader.bytes(4).toString('latin1') !== 'GGUF') {
    throw new Error(`${path} is not a GGUF file.`)
  }
  const version = reader.bytes(4).readUInt32LE()
  if (version !== 2 && version !== 3) {
    throw new Error(
      `${path} is a GGUF file of version ${version}; 2 and 3 are read, in little-endian order.`,
    )
  }
  const tensorCount = reader.count('tensors', most.tensors)
  const factCount = reader.count('facts', most.facts)
  const facts = new Map<string, Fact>()
  for (let index = 0; index < factCount; index++) {
    const key = reader.text()
    if (facts.has(key)) throw new Error(`${path} says ${key} twice.`)
    facts.set(key, reader.value(reader.u32()))
  }
  const infos = Array.from({ length: tensorCount }, () => readTensor(reader, path))
  const alignment = facts.get('general.alignment') ?? 32
  if (typeof alignment !== 'number' || !(alignment >= 1 && alignment <= 2 ** 16)) {
    throw new Error(`${path} has tensors aligned to ${String(alignment)} bytes.`)
  }
  const start = Math.ceil(reader.position() / alignment) * alignment
  const tensors = infos.map(({ offset, ...info }) => ({ ...info, start: start + offset }))
  return { path, size, facts, tensors }
}

function readTensor(reader: Reader, path: string) {
  const name = reader.text()
  const dimensions = reader.u32()
  if (dimensions < 1 || dimensions > most.dimensions) {
    throw new Error(`${path}: the tensor ${name} has ${dimensions} dimensions.`)
  }
  const sides = Array.from({ length: dimensions }, () => reader.u64())
  if (!Number.isSafeInteger(sides.reduce((product, side) => product * side, 1))) {
    throw new Error(`${path}: the tensor ${name} has the impossible shape [${sides.join(', ')}].`)
  }
  return { name, shape: sides.reverse(), type: reader.u32(), offset: reader.u64() }
}

type Reader = ReturnType<typeof makeReader>

/** Types of values, by their number in the format; 9 is a list. */
const widths = [1, 1, 2, 2, 4, 4, 4, 1, undefined, undefined, 8, 8, 8] as const
const textType = 8
const listType = 9

/** Reads a file from its beginning, a window at a time. */
function makeReader(path: string, file: number, size: number) {
  let window = Buffer.alloc(0)
  /** Where the window begins in the file, and where reading is in the window. */
  let start = 0
  let at = 0
  const end = Math.min(size, most.header)

  function bytes(length: number): Buffer {
    if (start + at + length > end) {
      throw new Error(`${path} ends at byte ${end}, within its header: it is cut off or damaged.`)
    }
    if (at + length > window.length) {
      start += at
      at = 0
      window = Buffer.alloc(Math.min(Math.max(length, 2 ** 20), end - start))
      for (let done = 0; done < window.length; ) {
        const count = readSync(file, window, done, window.length - done, start + done)
        if (count === 0) throw new Error(`${path} ends at byte ${start + done}: it is cut off.`)
        done += count
      }
    }
    at += length
    return window.subarray(at - length, at)
  }
  const u32 = (): number => bytes(4).readUInt32LE()
  function u64(): number {
    const value = bytes(8).readBigUInt64LE()
    if (value > BigInt(Number.MAX_SAFE_INTEGER)) {
      throw new Error(`${path} has the impossible number ${value} in its header.`)
    }
    return Number(value)
  }
  function count(what: string, limit: number): number {
    const value = u64()
    if (value > limit) throw new Error(`${path} has ${value} ${what}; up to ${limit} are read.`)
    return value
  }
  const text = (): string => bytes(count('bytes in a text', most.text)).toString('utf8')

  function scalar(type: number): number | string | boolean {
    if (type === textType) return text()
    const width = widths[type]
    if (width === undefined) throw new Error(`${path} has a value of the unknown type ${type}.`)
    return numberIn(bytes(width), type)
  }
  function value(type: number): Fact {
    if (type !== listType) return scalar(type)
    const of = u32()
    const length = count('items in a list', most.items)
    if (of === listType) throw new Error(`${path} has a list of lists, which is not read.`)
    const items: (number | string | boolean)[] = []
    for (let index = 0; index < length; index++) items.push(scalar(of))
    return items
  }
  return { bytes, u32, u64, count, text, value, position: () => start + at }
}

/** A float as short as it is told apart from others: 1e-5, not 0.000009999999747378752. */
function shortest(value: number): number {
  for (const digits of [6, 7, 8]) {
    const short = Number(value.toPrecision(digits))
    if (Math.fround(short) === value) return short
  }
  return value
}

function numberIn(bytes: Buffer, type: number): number | boolean {
  switch (type) {
    case 0:
      return bytes.readUInt8()
    case 1:
      return bytes.readInt8()
    case 2:
      return bytes.readUInt16LE()
    case 3:
      return bytes.readInt16LE()
    case 4:
      return bytes.readUInt32LE()
    case 5:
      return bytes.readInt32LE()
    case 6:
      return shortest(bytes.readFloatLE())
    case 7:
      return bytes.readUInt8() !== 0
    case 10:
      return Number(bytes.readBigUInt64LE())
    case 11:
      return Number(bytes.readBigInt64LE())
    default:
      return bytes.readDoubleLE()
  }
}
