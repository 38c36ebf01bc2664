import fc from 'fast-check'
import { parquetMetadata, parquetReadObjects } from 'hyparquet'
import { describe, expect, it } from 'vitest'
import { openTable } from './open-table.ts'
import type { Cell, Column } from './table.ts'

const columns: readonly Column[] = [
  { name: 'name', kind: 'text' },
  { name: 'note', kind: 'text', isOptional: true },
  { name: 'number', kind: 'integer' },
  { name: 'reward', kind: 'number', isOptional: true },
  { name: 'ids', kind: 'int32' },
  { name: 'mask', kind: 'int8' },
  { name: 'logprobs', kind: 'float', hasGaps: true },
  { name: 'credit', kind: 'double', isOptional: true },
]

async function write(rows: readonly Readonly<Record<string, Cell>>[]): Promise<ArrayBuffer> {
  const chunks: Buffer[] = []
  const table = openTable({ write: chunk => void chunks.push(Buffer.from(chunk)) }, columns, {
    run: 'test',
  })
  for (const row of rows) await table.append(row)
  await table.end()
  const bytes = Buffer.concat(chunks)
  return bytes.buffer.slice(bytes.byteOffset, bytes.byteOffset + bytes.length) as ArrayBuffer
}

/** A cell as a reader gives it. */
function asRead(cell: Cell): unknown {
  if (cell === undefined) return null
  if (typeof cell !== 'object') return cell
  return Array.from(cell, value => (Number.isNaN(value) ? null : value))
}

async function expectSame(rows: readonly Readonly<Record<string, Cell>>[]): Promise<void> {
  const file = await write(rows)
  const read = await parquetReadObjects({ file })
  const plain = read.map(row =>
    Object.fromEntries(
      Object.entries(row).map(([name, value]) => [
        name,
        ArrayBuffer.isView(value) ? Array.from(value as unknown as number[]) : (value ?? null),
      ]),
    ),
  )
  expect(plain).toEqual(
    rows.map(row => Object.fromEntries(columns.map(({ name }) => [name, asRead(row[name])]))),
  )
}

const tokens = fc.array(
  fc.record({
    id: fc.integer({ min: 0, max: 200_000 }),
    bit: fc.integer({ min: 0, max: 1 }),
    logprob: fc.oneof(
      fc.constant(0),
      fc.constant(Number.NaN),
      fc.float({ max: 0, noNaN: true, noDefaultInfinity: true }).map(value => value + 0),
    ),
  }),
  { maxLength: 40 },
)

const row = fc
  .record({
    name: fc.string(),
    note: fc.option(fc.string(), { nil: undefined }),
    number: fc.integer({ min: -1000, max: 1000 }),
    reward: fc.option(fc.double({ noNaN: true, noDefaultInfinity: true }), { nil: undefined }),
    tokens,
    hasCredit: fc.boolean(),
  })
  .map(
    (drawn): Readonly<Record<string, Cell>> => ({
      name: drawn.name,
      note: drawn.note,
      number: drawn.number,
      reward: drawn.reward === undefined ? undefined : drawn.reward + 0,
      ids: Int32Array.from(drawn.tokens, ({ id }) => id),
      mask: Uint8Array.from(drawn.tokens, ({ bit }) => bit),
      logprobs: Float32Array.from(drawn.tokens, ({ logprob }) => logprob),
      credit: drawn.hasCredit ? Float64Array.from(drawn.tokens, ({ id }) => id / 7) : undefined,
    }),
  )

describe('Parquet tables', () => {
  it('come back as they were written: empty lists, lists that are not there, gaps', async () => {
    await fc.assert(fc.asyncProperty(fc.array(row, { minLength: 1, maxLength: 12 }), expectSame), {
      seed: 7,
      numRuns: process.env.ESPALIER_SOAK ? 1000 : 60,
    })
  })

  it('can be without rows', async () => {
    await expectSame([])
  })

  it('are cut into row groups and pages, so that only a part is ever in memory', async () => {
    const long = Array.from({ length: 60 }, (_, number) => ({
      name: `row ${number}`,
      number,
      ids: Int32Array.from({ length: 8000 }, (_, token) => (token * 31 + number) % 150_000),
      mask: Uint8Array.from({ length: 8000 }, (_, token) => (token >> 7) & 1),
      logprobs: Float32Array.from({ length: 8000 }, (_, token) => -(token % 97) / 8),
    }))
    await expectSame(long)
    const metadata = parquetMetadata(await write(long))
    expect(metadata.row_groups.length).toBeGreaterThan(1)
    expect(metadata.row_groups[0]!.columns[4]!.meta_data!.codec).toBe('SNAPPY')
    expect(metadata.key_value_metadata).toEqual([{ key: 'run', value: 'test' }])
  })
})
