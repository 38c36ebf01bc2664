import { type Body, Chunk, type ChunkPlace, pageBytes } from './chunk.ts'
import { packDeltas } from './delta.ts'
import { GrowingBytes } from './growing-bytes.ts'
import { bitsFor, RunLengths } from './run-lengths.ts'
import { compressRuns } from './snappy.ts'
import type { ThriftStruct } from './thrift.ts'

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

/** How the lists of a kind lie in a file. */
export const listForms = {
  int32: { type: 'INT32', codec: 'UNCOMPRESSED' },
  int8: { type: 'INT32', codec: 'UNCOMPRESSED' },
  float: { type: 'FLOAT', codec: 'SNAPPY' },
  double: { type: 'DOUBLE', codec: 'SNAPPY' },
} as const

const arrays = { int32: Int32Array, float: Float32Array, double: Float64Array } as const

/** The lists of some rows. */
type Lists = readonly (NumberList | undefined)[]

/** Room that pages are put together in, one after the other. */
const body = new GrowingBytes(1 << 16)
let gathered = new ArrayBuffer(1 << 16)

/**
 * Writes the column's part of a row group. Lists of numbers are nearly all of a row: they are never taken apart into one
 * value each. Levels and masks are written as runs, token ids as packed differences, and of other numbers runs are
 * shortened and the rest is copied as it lies in memory.
 */
export function writeNumberList(
  place: Omit<ChunkPlace, 'path' | 'type' | 'codec'>,
  column: NumberListColumn,
  rows: Lists,
): ThriftStruct {
  const path = [column.name, 'list', 'element']
  const chunk = new Chunk({ ...place, ...listForms[column.kind], path })
  if (column.kind === 'int8') {
    chunk.addDictionary(2, { bytes: new Uint8Array(Int32Array.of(0, 1).buffer), size: 8 })
  }
  for (const page of toPages(rows)) writePage(chunk, column, page)
  return chunk.end()
}

function* toPages(rows: Lists): Generator<Lists> {
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

function writePage(chunk: Chunk, column: NumberListColumn, rows: Lists): void {
  const gaps = column.hasGaps ? rows.map(countGaps) : undefined
  body.clear()
  chunk.addPage({
    rows: rows.length,
    ...writeLevels(column, rows, gaps),
    ...writeValues(column, rows, gaps),
  })
}

/** Which numbers begin a row, and which are there at all. */
function writeLevels(column: NumberListColumn, rows: Lists, gaps: readonly number[] | undefined) {
  const base = column.isOptional ? 1 : 0
  const full = base + (column.hasGaps ? 2 : 1)
  const repetition = new RunLengths(1)
  const definition = new RunLengths(bitsFor(full))
  let values = 0
  let nulls = 0
  for (const [index, row] of rows.entries()) {
    repetition.add(0, 1)
    if (!row || row.length === 0) {
      definition.add(row ? base : 0, 1)
      values++
      nulls++
      continue
    }
    repetition.add(1, row.length - 1)
    values += row.length
    nulls += gaps?.[index] ?? 0
    if (gaps && gaps[index]! > 0) addGaps(definition, row, full)
    else definition.add(full, row.length)
  }
  return { repetition: repetition.end(), definition: definition.end(), values, nulls }
}

function addGaps(definition: RunLengths, row: NumberList, full: number): void {
  for (let token = 0; token < row.length; token++) {
    definition.add(Number.isNaN(row[token]) ? full - 1 : full, 1)
  }
}

function countGaps(list: NumberList | undefined): number {
  if (!list) return 0
  let gaps = 0
  for (let token = 0; token < list.length; token++) if (Number.isNaN(list[token])) gaps++
  return gaps
}

function writeValues(
  { kind }: NumberListColumn,
  rows: Lists,
  gaps: readonly number[] | undefined,
): { readonly encoding: 'PLAIN' | 'DELTA_BINARY_PACKED' | 'RLE_DICTIONARY'; readonly body: Body } {
  if (kind === 'int8') {
    writeMask(rows)
    return { encoding: 'RLE_DICTIONARY', body: { bytes: body.view(), size: body.length } }
  }
  const words = gather(kind, rows, gaps)
  if (kind === 'int32') {
    packDeltas(words, body)
    return { encoding: 'DELTA_BINARY_PACKED', body: { bytes: body.view(), size: body.length } }
  }
  compressRuns(words, kind === 'double' ? 2 : 1, body)
  return { encoding: 'PLAIN', body: { bytes: body.view(), size: words.byteLength } }
}

/** A mask as runs of dictionary indexes, which are its own values. */
function writeMask(rows: Lists): void {
  const runs = new RunLengths(1)
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
  body.byte(1)
  body.raw(runs.end())
}

/** The numbers of all lists end to end, as words of 32 bits; valid until the next ones are gathered. */
function gather(
  kind: Exclude<NumberKind, 'int8'>,
  rows: Lists,
  gaps: readonly number[] | undefined,
): Int32Array {
  const size = rows.reduce((sum, row) => sum + (row?.byteLength ?? 0), 0)
  if (gathered.byteLength < size) gathered = new ArrayBuffer(size * 2)
  const numbers = new arrays[kind](gathered)
  let at = 0
  for (const [index, row] of rows.entries()) {
    if (!row) continue
    const present = gaps && gaps[index]! > 0 ? row.filter(value => !Number.isNaN(value)) : row
    numbers.set(present, at)
    at += present.length
  }
  return new Int32Array(gathered, 0, (at * numbers.BYTES_PER_ELEMENT) / 4)
}
