import type { GrowingBytes } from './growing-bytes.ts'

/** A value of a field in Thrift's compact form, in which Parquet keeps what describes its data. */
export type ThriftValue =
  | { readonly kind: 'flag'; readonly value: boolean }
  | { readonly kind: 'byte' | 'int32' | 'int64'; readonly value: number }
  | { readonly kind: 'text'; readonly value: string }
  | { readonly kind: 'bytes'; readonly value: Uint8Array }
  | { readonly kind: 'struct'; readonly value: ThriftStruct }
  | { readonly kind: 'list'; readonly of: ItemKind; readonly value: readonly ThriftValue[] }
  /** A list of structs that are written already, one after the other. */
  | { readonly kind: 'written'; readonly count: number; readonly value: Uint8Array }

type ItemKind = 'int32' | 'text' | 'struct'

/** Values by the number of their field; those without one are left out. */
export type ThriftStruct = Readonly<Record<number, ThriftValue | undefined>>

const typeNumbers = {
  byte: 3,
  int32: 5,
  int64: 6,
  text: 8,
  bytes: 8,
  list: 9,
  written: 9,
  struct: 12,
} as const

export const flag = (value: boolean): ThriftValue => ({ kind: 'flag', value })
export const int32 = (value: number): ThriftValue => ({ kind: 'int32', value })
export const int64 = (value: number): ThriftValue => ({ kind: 'int64', value })
export const text = (value: string): ThriftValue => ({ kind: 'text', value })
export const struct = (value: ThriftStruct): ThriftValue => ({ kind: 'struct', value })
export const list = (of: ItemKind, value: readonly ThriftValue[]): ThriftValue => ({
  kind: 'list',
  of,
  value,
})

/** Appends a struct. */
export function writeStruct(output: GrowingBytes, fields: ThriftStruct): void {
  let last = 0
  // Keys that are whole numbers come in their order.
  for (const [key, value] of Object.entries(fields)) {
    if (value === undefined) continue
    const field = Number(key)
    output.byte(((field - last) << 4) | typeOf(value))
    writeValue(output, value)
    last = field
  }
  output.byte(0)
}

/** The type of a field; a flag has its value there. */
function typeOf(value: ThriftValue): number {
  if (value.kind === 'flag') return value.value ? 1 : 2
  return typeNumbers[value.kind]
}

function writeValue(output: GrowingBytes, value: ThriftValue): void {
  switch (value.kind) {
    case 'flag':
      break
    case 'byte':
      output.byte(value.value)
      break
    case 'int32':
    case 'int64':
      output.zigzag(value.value)
      break
    case 'text':
      writeBytes(output, Buffer.from(value.value))
      break
    case 'bytes':
      writeBytes(output, value.value)
      break
    case 'struct':
      writeStruct(output, value.value)
      break
    case 'list':
      beginList(output, value.of, value.value.length)
      for (const item of value.value) writeValue(output, item)
      break
    case 'written':
      beginList(output, 'struct', value.count)
      output.raw(value.value)
  }
}

function writeBytes(output: GrowingBytes, bytes: Uint8Array): void {
  output.varint(bytes.length)
  output.raw(bytes)
}

function beginList(output: GrowingBytes, of: ItemKind, count: number): void {
  output.byte((Math.min(count, 15) << 4) | typeNumbers[of])
  if (count >= 15) output.varint(count)
}
