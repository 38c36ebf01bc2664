import type { SchemaElement } from 'hyparquet'
import { getSchemaPath } from 'hyparquet/src/schema.js'
import { ByteWriter, ParquetWriter } from 'hyparquet-writer'
import { writeColumn } from 'hyparquet-writer/src/column.js'
import { encodeNestedValues } from 'hyparquet-writer/src/dremel.js'
import { snappyCompress } from 'hyparquet-writer/src/snappy.js'
import type { Output } from '../format.ts'
import {
  listSchema,
  type NumberList,
  type NumberListColumn,
  writeNumberList,
} from './number-list.ts'

/** A column of one value per row; texts may hold JSON. */
export interface PlainColumn {
  readonly name: string
  readonly kind: 'text' | 'integer' | 'number'
  readonly isOptional?: boolean
}

/** A column of a table. */
export type Column = NumberListColumn | PlainColumn

/** A value of a column; `undefined` where an optional one is not there. */
export type Cell = string | number | NumberList | undefined

/** A table that is written row by row; only the rows of one row group are kept in memory. */
export interface Table {
  append(row: Readonly<Record<string, Cell>>): Promise<void>
  end(): Promise<void>
}

/** Numbers in lists after which a row group is written. */
const groupNumbers = 1 << 20
const groupRows = 8192

/** Begins a Parquet file with snappy compression. */
export function beginTable(
  output: Output,
  columns: readonly Column[],
  metadata: Readonly<Record<string, string>>,
): Table {
  const writer = new ByteWriter()
  const schema = toSchema(columns)
  const parquet = new ParquetWriter({
    writer,
    schema,
    kvMetadata: Object.entries(metadata).map(([key, value]) => ({ key, value })),
  })
  let rows: Readonly<Record<string, Cell>>[] = []
  let numbers = 0

  async function flush(): Promise<void> {
    const start = writer.offset
    const chunks = columns.flatMap(column => {
      const written = writeCells({ writer, schema }, column, rows)
      parquet.pendingIndexes.push(written)
      return [written.chunk]
    })
    parquet.num_rows += BigInt(rows.length)
    parquet.row_groups.push({
      columns: chunks,
      total_byte_size: BigInt(writer.offset - start),
      num_rows: BigInt(rows.length),
    })
    rows = []
    numbers = 0
    await drain()
  }

  async function drain(): Promise<void> {
    const bytes = new Uint8Array(writer.buffer, 0, writer.index).slice()
    writer.index = 0
    await output.write(bytes)
  }

  return {
    async append(row) {
      rows.push(row)
      for (const cell of Object.values(row)) if (typeof cell === 'object') numbers += cell.length
      if (numbers >= groupNumbers || rows.length >= groupRows) await flush()
    },
    async end() {
      if (rows.length > 0) await flush()
      await parquet.finish()
      await drain()
    },
  }
}

const isList = (column: Column): column is NumberListColumn =>
  column.kind !== 'text' && column.kind !== 'integer' && column.kind !== 'number'

const physical = { text: 'BYTE_ARRAY', integer: 'INT32', number: 'DOUBLE' } as const

function toSchema(columns: readonly Column[]): SchemaElement[] {
  const elements = columns.flatMap((column): SchemaElement[] => {
    if (isList(column)) return listSchema(column)
    const { name, kind, isOptional } = column
    return [
      {
        name,
        type: physical[kind],
        repetition_type: isOptional ? 'OPTIONAL' : 'REQUIRED',
        ...(kind === 'text' && { converted_type: 'UTF8' }),
      },
    ]
  })
  return [{ name: 'row', num_children: columns.length }, ...elements]
}

function writeCells(
  { writer, schema }: { readonly writer: ByteWriter; readonly schema: SchemaElement[] },
  column: Column,
  rows: readonly Readonly<Record<string, Cell>>[],
): ReturnType<typeof writeColumn> {
  const cells = rows.map(row => row[column.name])
  if (isList(column)) {
    return { chunk: writeNumberList(writer, column, cells as readonly (NumberList | undefined)[]) }
  }
  const path = getSchemaPath(schema, [column.name])
  const schemaPath = path.map(({ element }) => element)
  return writeColumn({
    writer,
    column: {
      columnName: column.name,
      element: schemaPath.at(-1)!,
      schemaPath,
      codec: 'SNAPPY',
      compressors: { SNAPPY: snappyCompress },
      stats: true,
      pageSize: 1 << 20,
      columnIndex: false,
      offsetIndex: false,
    },
    pageData: encodeNestedValues(path, cells),
  })
}
