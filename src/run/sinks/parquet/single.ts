import { type Bounds, Chunk, type ChunkPlace, pageBytes } from './chunk.ts'
import { GrowingBytes } from './growing-bytes.ts'
import { bitsFor, RunLengths } from './run-lengths.ts'
import { compressBytes, compressRuns } from './snappy.ts'
import type { ThriftStruct } from './thrift.ts'

/** A column of one value per row; texts may hold JSON. */
export interface SingleColumn {
  readonly name: string
  readonly kind: 'text' | 'integer' | 'number'
  readonly isOptional?: boolean
}

/** How the values of a kind lie in a file. */
export const singleTypes = { text: 'BYTE_ARRAY', integer: 'INT32', number: 'DOUBLE' } as const

/** Room that pages are put together in, one after the other. */
const plain = new GrowingBytes(1 << 16)
const packed = new GrowingBytes(1 << 16)

type Single = string | number | undefined

/** Writes the column's part of a row group. */
export function writeSingles(
  place: Omit<ChunkPlace, 'path' | 'type' | 'codec'>,
  column: SingleColumn,
  cells: readonly Single[],
): ThriftStruct {
  const { name, kind } = column
  for (const cell of cells) checkCell(column, cell)
  const chunk = new Chunk({ ...place, path: [name], type: singleTypes[kind], codec: 'SNAPPY' })
  if (kind !== 'text') return chunk.end(writeNumbers(chunk, column, cells))
  const dictionary = findDictionary(cells as readonly (string | undefined)[])
  if (dictionary) return chunk.end(writeNamed(chunk, column, { cells, dictionary }))
  writeTexts(chunk, column, cells)
  return chunk.end()
}

/** What does not fit would become another value, or a file that nobody can read. */
function checkCell({ name, kind, isOptional }: SingleColumn, cell: Single): void {
  if (cell === undefined) {
    if (!isOptional) throw new TypeError(`${name} needs a value in every row`)
  } else if (typeof cell !== (kind === 'text' ? 'string' : 'number')) {
    throw new TypeError(`${name} holds a ${kind}, not ${JSON.stringify(cell)}`)
  } else if (kind === 'integer' && (Number(cell) | 0) !== cell) {
    throw new RangeError(`${name} holds integers of 32 bits, not ${cell}`)
  }
}

/** Which rows have a value. */
function presence({ isOptional }: SingleColumn, cells: readonly Single[]) {
  const runs = new RunLengths(1)
  let nulls = 0
  for (const cell of cells) {
    runs.add(cell === undefined ? 0 : 1, 1)
    if (cell === undefined) nulls++
  }
  return {
    rows: cells.length,
    values: cells.length,
    nulls,
    ...(isOptional && { definition: runs.end() }),
  }
}

function writeNumbers(
  chunk: Chunk,
  column: SingleColumn,
  cells: readonly Single[],
): Bounds | undefined {
  const values = cells.filter(cell => cell !== undefined) as number[]
  const array = column.kind === 'integer' ? Int32Array : Float64Array
  const numbers = array.from(values)
  packed.clear()
  compressRuns(new Int32Array(numbers.buffer), column.kind === 'integer' ? 1 : 2, packed)
  const body = { bytes: packed.view(), size: numbers.byteLength }
  chunk.addPage({ ...presence(column, cells), encoding: 'PLAIN', body })
  const finite = values.filter(value => !Number.isNaN(value))
  if (finite.length === 0) return undefined
  const toBytes = (value: number): Uint8Array => new Uint8Array(array.of(value).buffer)
  // Zero has two signs, and the bounds must hold both.
  const least = finite.reduce((a, b) => Math.min(a, b))
  const most = finite.reduce((a, b) => Math.max(a, b))
  return { least: toBytes(least === 0 ? -0 : least), most: toBytes(most === 0 ? 0 : most) }
}

/** Texts as they are, page by page. */
function writeTexts(chunk: Chunk, column: SingleColumn, cells: readonly Single[]): void {
  let start = 0
  plain.clear()
  for (let row = 0; row < cells.length; row++) {
    const cell = cells[row]
    if (cell !== undefined) plain.sizedText(cell as string)
    if (plain.length < pageBytes && row + 1 < cells.length) continue
    const page = presence(column, cells.slice(start, row + 1))
    chunk.addPage({ ...page, encoding: 'PLAIN', body: compressed() })
    start = row + 1
    plain.clear()
  }
}

/** What lies in `plain`, compressed. */
function compressed() {
  packed.clear()
  compressBytes(plain.view(), packed)
  return { bytes: packed.view(), size: plain.length }
}

/**
 * Numbers for texts that repeat: `undefined` if they hardly do. Texts of different lengths differ, which is seen
 * without reading them.
 */
function findDictionary(
  cells: readonly (string | undefined)[],
): ReadonlyMap<string, number> | undefined {
  const texts = cells.filter(cell => cell !== undefined)
  const most = texts.length / 2
  const lengths = new Set<number>()
  for (const { length } of texts) if (lengths.add(length).size > most) return undefined
  const dictionary = new Map<string, number>()
  for (const text of texts) {
    if (dictionary.has(text)) continue
    dictionary.set(text, dictionary.size)
    if (dictionary.size > most) return undefined
  }
  return dictionary.size > 0 ? dictionary : undefined
}

/** Texts by their number in a dictionary. */
function writeNamed(
  chunk: Chunk,
  column: SingleColumn,
  { cells, dictionary }: NamedCells,
): Bounds | undefined {
  plain.clear()
  for (const text of dictionary.keys()) plain.sizedText(text)
  chunk.addDictionary(dictionary.size, compressed())
  const bitWidth = Math.max(1, bitsFor(dictionary.size - 1))
  const indexes = new RunLengths(bitWidth)
  for (const cell of cells) {
    if (cell !== undefined) indexes.add(dictionary.get(cell as string)!, 1)
  }
  plain.clear()
  plain.byte(bitWidth)
  plain.raw(indexes.end())
  chunk.addPage({ ...presence(column, cells), encoding: 'RLE_DICTIONARY', body: compressed() })
  return textBounds([...dictionary.keys()])
}

interface NamedCells {
  readonly cells: readonly Single[]
  readonly dictionary: ReadonlyMap<string, number>
}

/** Longer texts are not worth a place in the file's end. */
const longestBound = 64

/** The first and the last of a few short texts, by their bytes. */
function textBounds(texts: readonly string[]): Bounds | undefined {
  if (texts.some(({ length }) => length > longestBound)) return undefined
  const sorted = texts.map(text => Buffer.from(text)).sort(Buffer.compare)
  return { least: sorted[0]!, most: sorted.at(-1)! }
}
