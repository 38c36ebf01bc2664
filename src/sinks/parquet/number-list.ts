import type { ColumnChunk, Encoding, SchemaElement } from 'hyparquet'
import { ByteWriter } from 'hyparquet-writer'
import { writePageHeader } from 'hyparquet-writer/src/datapage.js'
import { snappyCompress } from 'hyparquet-writer/src/snappy.js'

/** The numbers a list column holds: how they are kept in memory and in the file. */
export type NumberKind = 'int32' | 'int8' | 'float' | 'double'

/** One row's list. */
export type NumberList = Int32Array | Uint8Array | Float32Array | Float64Array

/** A column of lists of numbers. */
export interface NumberListColumn {
  readonly name: string
  readonly kind: NumberKind
  /** Whether a row may have no list at all. */
  readonly isOptional?: boolean
  /** Whether NaN stands for a missing number. */
  readonly hasGaps?: boolean
}

const physical = { int32: 'INT32', int8: 'INT32', float: 'FLOAT', double: 'DOUBLE' } as const

/** Bytes of numbers after which a page ends; it ends at a row. */
const pageBytes = 1 << 20

/** The schema of the column, in Parquet's three-level form of a list. */
export function listSchema({ name, kind, isOptional, hasGaps }: NumberListColumn): SchemaElement[] {
  return [
    {
      name,
      repetition_type: isOptional ? 'OPTIONAL' : 'REQUIRED',
      num_children: 1,
      converted_type: 'LIST',
      logical_type: { type: 'LIST' },
    },
    { name: 'list', repetition_type: 'REPEATED', num_children: 1 },
    {
      name: 'element',
      repetition_type: hasGaps ? 'OPTIONAL' : 'REQUIRED',
      type: physical[kind],
      ...(kind === 'int8' && { converted_type: 'INT_8' }),
    },
  ]
}

/**
 * Writes the column's part of a row group. Lists of numbers are nearly all of a row, and their bytes
 * are copied as they lie in memory; going through one boxed value per token takes twenty times as
 * long. Levels and masks are written as runs.
 */
export function writeNumberList(
  writer: ByteWriter,
  column: NumberListColumn,
  rows: readonly (NumberList | undefined)[],
): ColumnChunk {
  const start = writer.offset
  const dictionaryAt = column.kind === 'int8' ? writeBits(writer) : undefined
  const dataAt = writer.offset
  let values = 0
  let uncompressed = dataAt - start
  for (const page of toPages(rows)) {
    const written = writePage(writer, column, page)
    values += written.values
    uncompressed += written.bytes
  }
  const encodings: Encoding[] = ['RLE', column.kind === 'int8' ? 'RLE_DICTIONARY' : 'PLAIN']
  return {
    meta_data: {
      type: physical[column.kind],
      encodings,
      path_in_schema: [column.name, 'list', 'element'],
      codec: 'SNAPPY',
      num_values: BigInt(values),
      total_compressed_size: BigInt(writer.offset - start),
      total_uncompressed_size: BigInt(uncompressed),
      data_page_offset: BigInt(dataAt),
      ...(dictionaryAt !== undefined && { dictionary_page_offset: BigInt(dictionaryAt) }),
    },
    file_offset: BigInt(start),
  }
}

function* toPages(
  rows: readonly (NumberList | undefined)[],
): Generator<readonly (NumberList | undefined)[]> {
  let page: (NumberList | undefined)[] = []
  let size = 0
  for (const row of rows) {
    page.push(row)
    size += row?.byteLength ?? 0
    if (size < pageBytes) continue
    yield page
    page = []
    size = 0
  }
  if (page.length > 0) yield page
}

/** The dictionary of a mask: 0 and 1. */
function writeBits(writer: ByteWriter): number {
  const at = writer.offset
  const bits = snappyCompress(new Uint8Array(Int32Array.of(0, 1).buffer))
  writePageHeader(writer, {
    type: 'DICTIONARY_PAGE',
    uncompressed_page_size: 8,
    compressed_page_size: bits.length,
    dictionary_page_header: { num_values: 2, encoding: 'PLAIN' },
  })
  writer.appendBytes(bits)
  return at
}

function writePage(
  writer: ByteWriter,
  column: NumberListColumn,
  rows: readonly (NumberList | undefined)[],
): { readonly values: number; readonly bytes: number } {
  const levels = writeLevels(column, rows)
  const plain = column.kind === 'int8' ? writeMask(rows) : gatherBytes(column, rows)
  const packed = snappyCompress(plain)
  const levelBytes = levels.repetition.length + levels.definition.length
  writePageHeader(writer, {
    type: 'DATA_PAGE_V2',
    uncompressed_page_size: levelBytes + plain.length,
    compressed_page_size: levelBytes + packed.length,
    data_page_header_v2: {
      num_values: levels.values,
      num_nulls: levels.nulls,
      num_rows: rows.length,
      encoding: column.kind === 'int8' ? 'RLE_DICTIONARY' : 'PLAIN',
      definition_levels_byte_length: levels.definition.length,
      repetition_levels_byte_length: levels.repetition.length,
      is_compressed: true,
    },
  })
  writer.appendBytes(levels.repetition)
  writer.appendBytes(levels.definition)
  writer.appendBytes(packed)
  return { values: levels.values, bytes: levelBytes + plain.length }
}

/** Which numbers begin a row, and which are there at all. */
function writeLevels(column: NumberListColumn, rows: readonly (NumberList | undefined)[]) {
  const base = column.isOptional ? 1 : 0
  const full = base + (column.hasGaps ? 2 : 1)
  const repetition = openRuns(1)
  const definition = openRuns(full > 1 ? 2 : 1)
  let values = 0
  let nulls = 0
  for (const row of rows) {
    repetition.add(0, 1)
    if (!row || row.length === 0) {
      definition.add(row ? base : 0, 1)
      values++
      nulls++
      continue
    }
    repetition.add(1, row.length - 1)
    values += row.length
    if (column.hasGaps) nulls += addGaps(definition, row, full)
    else definition.add(full, row.length)
  }
  return { repetition: repetition.end(), definition: definition.end(), values, nulls }
}

function addGaps(definition: Runs, row: NumberList, full: number): number {
  const gaps = countGaps(row)
  if (gaps === 0) {
    definition.add(full, row.length)
    return 0
  }
  for (const value of row) definition.add(Number.isNaN(value) ? full - 1 : full, 1)
  return gaps
}

function countGaps(list: NumberList): number {
  let gaps = 0
  for (let token = 0; token < list.length; token++) if (Number.isNaN(list[token])) gaps++
  return gaps
}

interface Runs {
  add(value: number, count: number): void
  end(): Uint8Array
}

/** Parquet's run-length form: how often, then the value. */
function openRuns(bitWidth: number): Runs {
  const writer = new ByteWriter()
  const bytes = Math.ceil(bitWidth / 8)
  let last = 0
  let length = 0
  const flush = (): void => {
    if (length === 0) return
    writer.appendVarInt(length << 1)
    for (let byte = 0; byte < bytes; byte++) writer.appendUint8((last >> (8 * byte)) & 0xff)
  }
  return {
    add(value, count) {
      if (count === 0) return
      if (value === last) {
        length += count
        return
      }
      flush()
      last = value
      length = count
    },
    end() {
      flush()
      return writer.getBytes()
    },
  }
}

/** A mask as runs of dictionary indexes, which are its own values. */
function writeMask(rows: readonly (NumberList | undefined)[]): Uint8Array {
  const runs = openRuns(1)
  for (const row of rows) {
    if (!row) continue
    for (let start = 0; start < row.length; ) {
      const bit = row[start]!
      const change = row.indexOf(1 - bit, start)
      const end = change < 0 ? row.length : change
      runs.add(bit, end - start)
      start = end
    }
  }
  const written = runs.end()
  const bytes = new Uint8Array(written.length + 1)
  bytes[0] = 1
  bytes.set(written, 1)
  return bytes
}

function gatherBytes(
  column: NumberListColumn,
  rows: readonly (NumberList | undefined)[],
): Uint8Array {
  const lists = rows.flatMap(row => (row ? [column.hasGaps ? withoutGaps(row) : row] : []))
  const bytes = new Uint8Array(lists.reduce((sum, list) => sum + list.byteLength, 0))
  let at = 0
  for (const { buffer, byteOffset, byteLength } of lists) {
    bytes.set(new Uint8Array(buffer, byteOffset, byteLength), at)
    at += byteLength
  }
  return bytes
}

function withoutGaps(list: NumberList): NumberList {
  return countGaps(list) > 0 ? list.filter(value => !Number.isNaN(value)) : list
}
