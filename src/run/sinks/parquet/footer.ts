import { physicalTypes } from './chunk.ts'
import { type Column, isList } from './columns.ts'
import { GrowingBytes } from './growing-bytes.ts'
import { listForms, type NumberListColumn } from './number-list.ts'
import { type SingleColumn, singleTypes } from './single.ts'
import {
  flag,
  int32,
  int64,
  list,
  struct,
  type ThriftStruct,
  type ThriftValue,
  text,
  writeStruct,
} from './thrift.ts'

/** The end of a file: what its columns are, and where each part of them lies. */
export interface Footer {
  addRowGroup(group: RowGroup): void
  /** Appends the footer and its length. */
  end(output: GrowingBytes): void
}

/** Rows that lie together, column by column. */
export interface RowGroup {
  readonly chunks: readonly ThriftStruct[]
  readonly rows: number
  readonly size: number
}

const repetitions = { required: int32(0), optional: int32(1), repeated: int32(2) } as const
const convertedTypes = { utf8: int32(0), list: int32(3), int8: int32(15) } as const
const nothing = struct({})

/** Begins a footer. What it says of row groups is kept as the bytes that it becomes. */
export function beginFooter(
  columns: readonly Column[],
  metadata: Readonly<Record<string, string>>,
): Footer {
  const groups = new GrowingBytes()
  let count = 0
  let rows = 0
  return {
    addRowGroup(group) {
      count++
      rows += group.rows
      writeStruct(groups, {
        1: list('struct', group.chunks.map(struct)),
        2: int64(group.size),
        3: int64(group.rows),
      })
    },
    end(output) {
      const start = output.length
      writeStruct(output, {
        1: int32(2),
        2: list('struct', schemaOf(columns).map(struct)),
        3: int64(rows),
        4: { kind: 'written', count, value: groups.view() },
        5: list('struct', Object.entries(metadata).map(toPair)),
        6: text('espalier'),
        // Bounds are in the usual order of each type.
        7: list(
          'struct',
          columns.map(() => struct({ 1: nothing })),
        ),
      })
      const size = output.length - start
      output.reserve(4)
      output.length = output.bytes.writeUInt32LE(size, output.length)
    },
  }
}

const toPair = ([key, value]: readonly [string, string]): ThriftValue =>
  struct({ 1: text(key), 2: text(value) })

function schemaOf(columns: readonly Column[]): readonly ThriftStruct[] {
  const root = { 4: text('row'), 5: int32(columns.length) }
  return [
    root,
    ...columns.flatMap(column => (isList(column) ? listSchema(column) : [singleSchema(column)])),
  ]
}

/** Parquet's three-level form of a list. */
function listSchema({ name, kind, isOptional, hasGaps }: NumberListColumn): ThriftStruct[] {
  return [
    {
      3: isOptional ? repetitions.optional : repetitions.required,
      4: text(name),
      5: int32(1),
      6: convertedTypes.list,
      10: struct({ 3: nothing }),
    },
    { 3: repetitions.repeated, 4: text('list'), 5: int32(1) },
    {
      1: int32(physicalTypes[listForms[kind].type]),
      3: hasGaps ? repetitions.optional : repetitions.required,
      4: text('element'),
      ...(kind === 'int8' && {
        6: convertedTypes.int8,
        10: struct({ 10: struct({ 1: { kind: 'byte', value: 8 }, 2: flag(true) }) }),
      }),
    },
  ]
}

function singleSchema({ name, kind, isOptional }: SingleColumn): ThriftStruct {
  return {
    1: int32(physicalTypes[singleTypes[kind]]),
    3: isOptional ? repetitions.optional : repetitions.required,
    4: text(name),
    ...(kind === 'text' && { 6: convertedTypes.utf8, 10: struct({ 1: nothing }) }),
  }
}
