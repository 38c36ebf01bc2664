import type { Tensor } from './tensor.ts'

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
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength)
  const length = bytes.length < 8 ? -1 : Number(view.getBigUint64(0, true))
  if (length < 0 || length > Math.min(bytes.length - 8, headerLimit)) {
    throw new Error(`${source} is not a safetensors file: its header would have ${length} bytes.`)
  }
  const start = 8 + length
  const entries = readHeader(bytes.subarray(8, start), source)
  const found = entries.map(entry => checkEntry(entry, bytes.length - start, source))
  checkCoverage(found, bytes.length - start, source)
  return found.map(({ name, shape, start: offset, end }) => {
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

function readHeader(bytes: Uint8Array, source: string): [string, unknown][] {
  let header: unknown
  try {
    header = JSON.parse(new TextDecoder('utf-8', { fatal: true }).decode(bytes))
  } catch (cause) {
    throw new Error(`${source} is not a safetensors file: its header is not JSON.`, { cause })
  }
  if (typeof header !== 'object' || header === null || Array.isArray(header)) {
    throw new Error(`${source} is not a safetensors file: its header is not an object.`)
  }
  return Object.entries(header).filter(([name]) => name !== '__metadata__')
}

interface Entry {
  readonly name: string
  readonly shape: readonly number[]
  readonly start: number
  readonly end: number
}

function checkEntry([name, value]: [string, unknown], size: number, source: string): Entry {
  const { dtype, shape, data_offsets: offsets } = (value ?? {}) as Record<string, unknown>
  const problem = (what: string) => new Error(`${source}: the tensor ${name} ${what}.`)
  if (dtype !== 'F32') throw problem(`has the type ${String(dtype)}; only F32 is read`)
  if (!isWholeNumbers(shape)) throw problem('has no shape')
  if (!isWholeNumbers(offsets) || offsets.length !== 2) throw problem('has no two offsets')
  const [start, end] = offsets as [number, number]
  const count = shape.reduce((product, side) => product * side, 1)
  if (start > end || end > size) throw problem(`lies at [${start}, ${end}] of ${size} bytes`)
  if (end - start !== count * 4) {
    throw problem(`has ${end - start} bytes for the shape [${shape.join(', ')}]`)
  }
  return { name, shape, start, end }
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
