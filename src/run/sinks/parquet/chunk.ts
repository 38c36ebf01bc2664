import type { GrowingBytes } from './growing-bytes.ts'
import { flag, int32, int64, list, struct, type ThriftStruct, text, writeStruct } from './thrift.ts'

/** How values lie in a file, with Parquet's number of it. */
export const physicalTypes = { INT32: 1, FLOAT: 4, DOUBLE: 5, BYTE_ARRAY: 6 } as const

/** The name of a physical type. */
export type PhysicalType = keyof typeof physicalTypes

const encodings = { PLAIN: 0, RLE: 3, DELTA_BINARY_PACKED: 5, RLE_DICTIONARY: 8 } as const
const codecs = { UNCOMPRESSED: 0, SNAPPY: 1 } as const
const pageTypes = { dictionary: 2, data: 3 } as const

/** Bytes of values after which a page ends; it ends at a row. */
export const pageBytes = 1 << 20

/** The values of a page as they are written, and how many bytes they were before compression. */
export interface Body {
  readonly bytes: Uint8Array
  readonly size: number
}

/** Some rows of a column. */
export interface Page {
  readonly rows: number
  /** Values, with those that are not there. */
  readonly values: number
  readonly nulls: number
  /** Which values begin a row. */
  readonly repetition?: Uint8Array
  /** Which values are there. */
  readonly definition?: Uint8Array
  readonly encoding: Exclude<keyof typeof encodings, 'RLE'>
  readonly body: Body
}

/** What is known of a chunk's values, in Parquet's plain form. */
export interface Bounds {
  readonly least: Uint8Array
  readonly most: Uint8Array
}

/** Where a chunk goes, and which column it belongs to. */
export interface ChunkPlace {
  readonly output: GrowingBytes
  /** Where in the file the output begins. */
  readonly base: number
  readonly path: readonly string[]
  readonly type: PhysicalType
  readonly codec: keyof typeof codecs
}

/** The part of a column that lies in one row group: pages, and what the file's end says of them. */
export class Chunk {
  readonly #place: ChunkPlace
  readonly #start: number
  readonly #encodings = new Set<keyof typeof encodings>(['RLE'])
  #dictionaryAt: number | undefined
  #dataAt: number | undefined
  #values = 0
  #nulls = 0
  #uncompressed = 0

  constructor(place: ChunkPlace) {
    this.#place = place
    this.#start = place.output.length
  }

  /** Adds the values that pages name by their number. */
  addDictionary(count: number, body: Body): void {
    this.#dictionaryAt = this.#offset()
    this.#encodings.add('PLAIN')
    const header = { 1: int32(count), 2: int32(encodings.PLAIN) }
    this.#begin('dictionary', { size: body.size, bytes: body.bytes.length }, { 7: struct(header) })
    this.#place.output.raw(body.bytes)
  }

  addPage(page: Page): void {
    const { repetition, definition, body } = page
    this.#dataAt ??= this.#offset()
    this.#values += page.values
    this.#nulls += page.nulls
    this.#encodings.add(page.encoding)
    const levels = (repetition?.length ?? 0) + (definition?.length ?? 0)
    const isCompressed = this.#place.codec === 'SNAPPY' && body.size > 0
    const bytes = body.size > 0 ? body.bytes : body.bytes.subarray(0, 0)
    this.#begin(
      'data',
      { size: levels + body.size, bytes: levels + bytes.length },
      {
        8: struct({
          1: int32(page.values),
          2: int32(page.nulls),
          3: int32(page.rows),
          4: int32(encodings[page.encoding]),
          5: int32(definition?.length ?? 0),
          6: int32(repetition?.length ?? 0),
          7: flag(isCompressed),
        }),
      },
    )
    for (const part of [repetition, definition, bytes]) if (part) this.#place.output.raw(part)
  }

  /** What the end of the file says of the chunk. */
  end(bounds?: Bounds): ThriftStruct {
    const { path, type, codec, output } = this.#place
    const size = output.length - this.#start
    return {
      2: int64(0),
      3: struct({
        1: int32(physicalTypes[type]),
        2: list(
          'int32',
          [...this.#encodings].map(name => int32(encodings[name])),
        ),
        3: list('text', path.map(text)),
        4: int32(codecs[codec]),
        5: int64(this.#values),
        6: int64(this.#uncompressed),
        7: int64(size),
        9: int64(this.#dataAt ?? this.#offset()),
        ...(this.#dictionaryAt !== undefined && { 11: int64(this.#dictionaryAt) }),
        12: struct({
          3: int64(this.#nulls),
          ...(bounds && {
            5: { kind: 'bytes', value: bounds.most },
            6: { kind: 'bytes', value: bounds.least },
          }),
        }),
      }),
    }
  }

  #offset(): number {
    return this.#place.base + this.#place.output.length
  }

  #begin(
    type: keyof typeof pageTypes,
    { size, bytes }: { readonly size: number; readonly bytes: number },
    own: ThriftStruct,
  ): void {
    const { output } = this.#place
    const start = output.length
    writeStruct(output, { 1: int32(pageTypes[type]), 2: int32(size), 3: int32(bytes), ...own })
    this.#uncompressed += output.length - start + size
  }
}
