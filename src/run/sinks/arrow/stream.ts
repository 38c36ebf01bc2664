import { type Cell, type Column, isList } from '../parquet/columns.ts'
import type { NumberKind } from '../parquet/number-list.ts'
import { type Flat, flatBuffer } from './flat-buffer.ts'

type Row = Readonly<Record<string, Cell>>

/** Rows as a stream of Arrow's IPC format: a schema, the rows as one batch, and the end. */
export function arrowStream(
  columns: readonly Column[],
  rows: readonly Row[],
  metadata: Readonly<Record<string, string>>,
): Buffer {
  const batch = new Batch(rows.length)
  for (const column of columns)
    batch.add(
      column,
      rows.map(row => row[column.name]),
    )
  return Buffer.concat([
    message(schemaHeader, schemaOf(columns, metadata), Buffer.of()),
    message(batchHeader, batch.header(), batch.body()),
    Buffer.from('ffffffff00000000', 'hex'),
  ])
}

const [schemaHeader, batchHeader] = [1, 3]
/** Version 5 of the metadata, which all that read Arrow since 1.0 know. */
const metadataVersion = 4

function message(kind: number, fields: readonly Flat[], body: Buffer): Buffer {
  const header = flatBuffer([
    short(metadataVersion),
    { kind: 'byte', value: kind },
    { kind: 'table', fields },
    { kind: 'long', value: body.length },
  ])
  const prefix = Buffer.alloc(8, 0xff)
  prefix.writeInt32LE(header.length, 4)
  return Buffer.concat([prefix, header, body])
}

const short = (value: number): Flat => ({ kind: 'short', value })
const byte = (value: number): Flat => ({ kind: 'byte', value })
const text = (value: string): Flat => ({ kind: 'text', value })

function schemaOf(
  columns: readonly Column[],
  metadata: Readonly<Record<string, string>>,
): readonly Flat[] {
  const notes = Object.entries(metadata).map(([name, value]) => [text(name), text(value)])
  return [
    short(0),
    { kind: 'tables', tables: columns.map(fieldOf) },
    { kind: 'tables', tables: notes },
  ]
}

/** The kinds of values, by their number in Arrow's schema and what describes them. */
const types: Readonly<Record<Column['kind'], readonly [number, readonly Flat[]]>> = {
  text: [5, []],
  integer: [2, [{ kind: 'int', value: 32 }, byte(1)]],
  number: [3, [short(2)]],
  int32: [2, [{ kind: 'int', value: 32 }, byte(1)]],
  int8: [2, [{ kind: 'int', value: 8 }, byte(1)]],
  float: [3, [short(1)]],
  double: [3, [short(2)]],
}
const listType = 12

function fieldOf(column: Column): readonly (Flat | undefined)[] {
  const { name, kind } = column
  const own = field(isList(column) ? 'item' : name, types[kind], [])
  if (!isList(column)) return own
  return field(name, [listType, []], [own])
}

function field(
  name: string,
  [type, fields]: readonly [number, readonly Flat[]],
  children: readonly (readonly (Flat | undefined)[])[],
): readonly (Flat | undefined)[] {
  const inner: Flat = { kind: 'tables', tables: children }
  return [text(name), byte(1), byte(type), { kind: 'table', fields }, undefined, inner]
}

const arrays = { int32: Int32Array, int8: Int8Array, float: Float32Array, double: Float64Array }

/** The columns of one batch, as they lie behind its header. */
class Batch {
  readonly #rows: number
  readonly #nodes: [number, number][] = []
  readonly #places: [number, number][] = []
  readonly #parts: Buffer[] = []
  #size = 0

  constructor(rows: number) {
    this.#rows = rows
  }

  header(): readonly Flat[] {
    return [
      { kind: 'long', value: this.#rows },
      { kind: 'pairs', pairs: this.#nodes },
      { kind: 'pairs', pairs: this.#places },
    ]
  }

  body(): Buffer {
    return Buffer.concat(this.#parts)
  }

  add(column: Column, cells: readonly Cell[]): void {
    this.#addValidity(cells)
    if (isList(column)) this.#addLists(column.kind, cells)
    else if (column.kind === 'text') this.#addTexts(cells as readonly (string | undefined)[])
    else {
      const numbers = cells.map(cell => (cell as number | undefined) ?? 0)
      this.#addBytes(
        column.kind === 'integer' ? Int32Array.from(numbers) : Float64Array.from(numbers),
      )
    }
  }

  #addTexts(cells: readonly (string | undefined)[]): void {
    const texts = cells.map(cell => Buffer.from(cell ?? ''))
    this.#addBytes(endsOf(texts.map(({ length }) => length)))
    this.#addBytes(Buffer.concat(texts))
  }

  /** NaN, and null if rows come as JSON, stand for a number that is missing. */
  #addLists(kind: NumberKind, cells: readonly Cell[]): void {
    const lists = cells.map(cell => (cell ?? []) as ArrayLike<number | null>)
    this.#addBytes(endsOf(lists.map(({ length }) => length)))
    const values = lists.flatMap(list => Array.from(list, value => value ?? Number.NaN))
    this.#addValidity(values.map(value => (Number.isNaN(value) ? undefined : value)))
    this.#addBytes(arrays[kind].from(values))
  }

  #addValidity(cells: readonly Cell[]): void {
    const bits = new Uint8Array(Math.ceil(cells.length / 8))
    let missing = 0
    for (const [index, cell] of cells.entries()) {
      if (cell === undefined) missing++
      else bits[index >> 3]! |= 1 << (index & 7)
    }
    this.#nodes.push([cells.length, missing])
    this.#addBytes(missing === 0 ? new Uint8Array() : bits)
  }

  /** Every part begins at a multiple of eight. */
  #addBytes({ buffer, byteOffset, byteLength }: NodeJS.ArrayBufferView): void {
    this.#places.push([this.#size, byteLength])
    const padding = -byteLength & 7
    this.#parts.push(Buffer.from(buffer, byteOffset, byteLength), Buffer.alloc(padding))
    this.#size += byteLength + padding
  }
}

/** Where each of some parts ends, behind a zero. */
function endsOf(sizes: readonly number[]): Int32Array {
  let end = 0
  return Int32Array.from([0, ...sizes.map(size => (end += size))])
}
