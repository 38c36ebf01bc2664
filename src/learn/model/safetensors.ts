import type { Tensor } from './tensor.ts'
import type { TensorFacts } from './weights-file.ts'

/** Types of numbers that are read, as the format names them. */
const types = {
  F32: { type: 'f32', width: 4 },
  F16: { type: 'f16', width: 2 },
  BF16: { type: 'bf16', width: 2 },
} as const

/** The largest header we read: thousands of tensors fit. */
const headerLimit = 4 * 2 ** 20

/** Writes tensors in the safetensors format: header length, JSON header, raw little-endian floats. */
export function writeSafetensors(
  tensors: readonly Tensor[],
  metadata: Readonly<Record<string, string>> = {},
): Uint8Array {
  let end = 0
  const entries = tensors.map(({ name, shape, data }) => {
    const start = end
    end += data.length * 4
    return [name, { dtype: 'F32', shape, data_offsets: [start, end] }] as const
  })
  const about = { format: 'pt', ...metadata }
  const text = JSON.stringify(Object.fromEntries([['__metadata__', about], ...entries]))
  const head = new TextEncoder().encode(text.padEnd(Math.ceil(text.length / 8) * 8))
  const bytes = new Uint8Array(8 + head.length + end)
  const view = new DataView(bytes.buffer)
  view.setBigUint64(0, BigInt(head.length), true)
  bytes.set(head, 8)
  let at = 8 + head.length
  for (const { data } of tensors) {
    for (const value of data) {
      view.setFloat32(at, value, true)
      at += 4
    }
  }
  return bytes
}

/** Reads a safetensors file of 32-bit floats; `source` names it in errors. */
export function readSafetensors(bytes: Uint8Array, source: string): Tensor[] {
  const start = 8 + headerLength(bytes, bytes.length, source)
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength)
  const found = readEntries(bytes.subarray(8, start), bytes.length - start, source)
  return found.map(({ name, shape, type, start: offset, end }) => {
    if (type !== 'f32') {
      throw new Error(`${source}: the tensor ${name} has the type ${type}; only f32 is read here.`)
    }
    const data = new Float32Array((end - offset) / 4)
    for (let index = 0; index < data.length; index++) {
      data[index] = view.getFloat32(start + offset + index * 4, true)
    }
    const wrong = data.findIndex(value => !Number.isFinite(value))
    if (wrong >= 0) {
      throw new Error(`${source} is damaged: number ${wrong} of ${name} is ${data[wrong]}.`)
    }
    return { name, shape, data }
  })
}

/** The length of the header of a file of `size` bytes, from its first eight. */
export function headerLength(bytes: Uint8Array, size: number, source: string): number {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength)
  const length = bytes.length < 8 ? -1 : Number(view.getBigUint64(0, true))
  if (length >= 0 && length <= Math.min(size - 8, headerLimit)) return length
  throw new Error(`${source} is not a safetensors file: its header would have ${length} bytes.`)
}

/** The tensors that a header lists, over `size` bytes of numbers. */
export function readEntries(header: Uint8Array, size: number, source: string): Entry[] {
  const found = readHeader(header, source).map(entry => checkEntry(entry, size, source))
  checkCoverage(found, size, source)
  return found
}

/** What a file says about itself besides its tensors. */
export function readMetadata(
  bytes: Uint8Array,
  source: string,
): Readonly<Record<string, string | undefined>> {
  const header = bytes.subarray(8, 8 + headerLength(bytes, bytes.length, source))
  const { __metadata__: found } = parseHeader(header, source)
  return typeof found === 'object' && found !== null ? (found as Record<string, string>) : {}
}

function readHeader(bytes: Uint8Array, source: string): [string, unknown][] {
  return Object.entries(parseHeader(bytes, source)).filter(([name]) => name !== '__metadata__')
}

function parseHeader(bytes: Uint8Array, source: string): Readonly<Record<string, unknown>> {
  let header: unknown
  try {
    header = JSON.parse(new TextDecoder('utf-8', { fatal: true }).decode(bytes))
  } catch (cause) {
    throw new Error(`${source} is not a safetensors file: its header is not JSON.`, { cause })
  }
  if (typeof header !== 'object' || header === null || Array.isArray(header)) {
    throw new Error(`${source} is not a safetensors file: its header is not an object.`)
  }
  return header as Readonly<Record<string, unknown>>
}

/** Where a tensor lies among the numbers of a file. */
export interface Entry extends TensorFacts {
  readonly name: string
  readonly start: number
  readonly end: number
}

function checkEntry([name, value]: [string, unknown], size: number, source: string): Entry {
  const { dtype, shape, data_offsets: offsets } = (value ?? {}) as Record<string, unknown>
  const problem = (what: string) => new Error(`${source}: the tensor ${name} ${what}.`)
  if (typeof dtype !== 'string' || !Object.hasOwn(types, dtype)) {
    throw problem(`has the type ${String(dtype)}; ${Object.keys(types).join(', ')} are read`)
  }
  const { type, width } = types[dtype as keyof typeof types]
  if (!isWholeNumbers(shape)) throw problem('has no shape')
  if (!isWholeNumbers(offsets) || offsets.length !== 2) throw problem('has no two offsets')
  const [start, end] = offsets as [number, number]
  const count = shape.reduce((product, side) => product * side, 1)
  if (start > end || end > size) throw problem(`lies at [${start}, ${end}] of ${size} bytes`)
  if (end - start !== count * width) {
    throw problem(`has ${end - start} bytes for the shape [${shape.join(', ')}]`)
  }
  return { name, shape, type, start, end }
}

function isWholeNumbers(value: unknown): value is number[] {
  return Array.isArray(value) && value.every(side => Number.isSafeInteger(side) && side >= 0)
}

/** The format allows neither gaps nor overlaps. */
function checkCoverage(entries: readonly Entry[], size: number, source: string): void {
  let end = 0
  for (const entry of [...entries].sort((a, b) => a.start - b.start || a.end - b.end)) {
    if (entry.start !== end) {
      throw new Error(
        `${source}: the tensor ${entry.name} begins at ${entry.start}, not at ${end}.`,
      )
    }
    end = entry.end
  }
  if (end !== size) throw new Error(`${source} has ${size - end} bytes that belong to no tensor.`)
}
