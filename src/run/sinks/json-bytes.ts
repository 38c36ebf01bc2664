import { withoutSecrets } from '../../base/core/process/secrets.ts'
import { digitsOf, scaleOf, shortestDecimal, shortestFloat32 } from './number.ts'

/**
 * JSON written straight into bytes. Rows are mostly numbers, and a string per number would cost
 * more than the numbers themselves.
 */
export interface JsonBytes {
  /** A text that is JSON already. */
  raw(text: string): void
  /** `"name":`, with a comma before it unless it is the first of its object. */
  key(name: string): void
  integers(values: Int32Array | Uint8Array): void
  /** Shortest form; `null` if a number is not finite. */
  floats(values: Float32Array): void
  /** What was written so far, and an empty start; valid until the next write. */
  take(): Uint8Array
}

/** Bytes that one number can take, with its comma. */
const widest = 32
const brace = 123
const open = 91
const close = 93
const comma = 44
const minus = 45
const point = 46
const zero = 48
const letterE = 101

/** Opens an empty text. */
export function makeJsonBytes(): JsonBytes {
  let bytes = Buffer.allocUnsafe(1 << 16)
  let length = 0

  function reserve(size: number): void {
    if (length + size <= bytes.length) return
    const grown = Buffer.allocUnsafe(Math.max(bytes.length * 2, length + size))
    bytes.copy(grown, 0, 0, length)
    bytes = grown
  }

  function raw(text: string): void {
    // A character of a string takes at most three bytes.
    reserve(text.length * 3)
    length += bytes.write(text, length)
  }

  return {
    raw,
    key(name) {
      const isFirst = length === 0 || bytes[length - 1] === brace
      raw(`${isFirst ? '' : ','}${JSON.stringify(name)}:`)
    },
    integers(values) {
      reserve(values.length * widest + 2)
      length = putIntegers(bytes, length, values)
    },
    floats(values) {
      reserve(values.length * widest + 2)
      length = putFloats(bytes, length, values)
    },
    take() {
      const written = bytes.subarray(0, length)
      length = 0
      return written
    },
  }
}

function putIntegers(bytes: Buffer, start: number, values: Int32Array | Uint8Array): number {
  let at = start
  bytes[at++] = open
  for (let index = 0; index < values.length; index++) {
    if (index > 0) bytes[at++] = comma
    at = putInteger(bytes, at, values[index]!)
  }
  bytes[at++] = close
  return at
}

function putFloats(bytes: Buffer, start: number, values: Float32Array): number {
  let at = start
  bytes[at++] = open
  for (let index = 0; index < values.length; index++) {
    if (index > 0) bytes[at++] = comma
    at = putFloat(bytes, at, values[index]!)
  }
  bytes[at++] = close
  return at
}

function putInteger(bytes: Buffer, at: number, value: number): number {
  if (value < 0) return at + bytes.write(String(value), at)
  const end = at + countDigits(value)
  putDigits(bytes, end, value)
  return end
}

/** Writes digits so that the last lies before `end`. */
function putDigits(bytes: Buffer, end: number, value: number): void {
  let rest = value
  let at = end
  do {
    const next = Math.trunc(rest / 10)
    bytes[--at] = zero + (rest - next * 10)
    rest = next
  } while (rest > 0)
}

function putFloat(bytes: Buffer, start: number, value: number): number {
  let at = start
  if (value === 0) {
    bytes[at++] = zero
    return at
  }
  const packed = Number.isInteger(value) ? -1 : shortestDecimal(Math.abs(value))
  if (packed < 0) return at + bytes.write(shortestFloat32(value), at)
  if (value < 0) bytes[at++] = minus
  return putDecimal(bytes, at, packed)
}

function putDecimal(bytes: Buffer, start: number, packed: number): number {
  let rest = digitsOf(packed)
  let places = scaleOf(packed)
  while (places > 0 && rest % 10 === 0) {
    rest /= 10
    places--
  }
  if (places === 0) return putInteger(bytes, start, rest)
  // JavaScript's own border between the two notations.
  if (places - countDigits(rest) >= 6) return putExponent(bytes, start, { digits: rest, places })
  const width = Math.max(countDigits(rest), places + 1)
  const end = start + width + 1
  let at = end
  for (let written = 0; written < width; written++) {
    if (written === places) bytes[--at] = point
    const next = Math.trunc(rest / 10)
    bytes[--at] = zero + (rest - next * 10)
    rest = next
  }
  return end
}

/** Digits with an exponent: `1.1920929e-7`. */
function putExponent(
  bytes: Buffer,
  start: number,
  { digits, places }: { readonly digits: number; readonly places: number },
): number {
  const count = countDigits(digits)
  let at = start + count + (count > 1 ? 1 : 0)
  putDigits(bytes, at, digits)
  if (count > 1) {
    bytes[start] = bytes[start + 1]!
    bytes[start + 1] = point
  }
  bytes[at++] = letterE
  bytes[at++] = minus
  return putInteger(bytes, at, places - count + 1)
}

const steps = [10, 100, 1000, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9] as const

function countDigits(value: number): number {
  let count = 1
  while (count <= steps.length && value >= steps[count - 1]!) count++
  return count
}

/** Writes a value as JSON, without secrets; typed arrays inside it become lists of numbers. */
export function writeJson(json: JsonBytes, value: unknown): void {
  if (value instanceof Int32Array || value instanceof Uint8Array) json.integers(value)
  else if (value instanceof Float32Array) json.floats(value)
  else if (value instanceof Float64Array) json.raw(`[${value.join()}]`)
  else if (Array.isArray(value)) writeList(json, value)
  else if (typeof value === 'object' && value !== null) writeObject(json, value)
  else if (typeof value === 'string') json.raw(JSON.stringify(withoutSecrets(value)))
  else json.raw(typeof value === 'bigint' ? String(value) : (JSON.stringify(value) ?? 'null'))
}

function writeList(json: JsonBytes, values: readonly unknown[]): void {
  json.raw('[')
  values.forEach((value, index) => {
    if (index > 0) json.raw(',')
    writeJson(json, value)
  })
  json.raw(']')
}

/** Fields without a value are left out, as JSON does. */
function writeObject(json: JsonBytes, value: object): void {
  json.raw('{')
  for (const [name, field] of Object.entries(value)) {
    if (field === undefined) continue
    json.key(withoutSecrets(name))
    writeJson(json, field)
  }
  json.raw('}')
}
