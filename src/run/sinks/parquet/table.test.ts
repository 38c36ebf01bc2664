import fc from 'fast-check'
import { parquetMetadata, parquetReadObjects } from 'hyparquet'
import { describe, expect, it } from 'vitest'
import { keepSecret } from '../../../base/core/process/secrets.ts'
import type { Cell, Column } from './columns.ts'
import { openTable } from './open-table.ts'

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

/** Whether a reader gave what was written: `null` where a number or the whole cell is missing. */
function isSame(read: unknown, written: Cell): boolean {
  if (typeof written !== 'object') return (read ?? undefined) === written
  const list = read as ArrayLike<number | null>
  if (list?.length !== written.length) return false
  for (let at = 0; at < written.length; at++) {
    if (list[at] !== written[at] && !(list[at] === null && Number.isNaN(written[at]))) return false
  }
  return true
}

async function expectSame(rows: readonly Readonly<Record<string, Cell>>[]): Promise<void> {
  const read = await parquetReadObjects({ file: await write(rows) })
  expect(read.length).toBe(rows.length)
  const different = rows.flatMap((row, index) =>
    columns
      .filter(({ name }) => !isSame(read[index]![name], row[name]))
      .map(({ name }) => ({ row: index, name, read: read[index]![name], written: row[name] })),
  )
  expect(different).toEqual([])
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

  it('H4: hold no secret in their texts', async () => {
    keepSecret('greengages-of-mine')
    const numbers = { number: 1, ids: new Int32Array(1), mask: new Uint8Array(1) }
    const row = { name: 'greengages-of-mine', ...numbers, logprobs: new Float32Array(1) }
    const file = await write([row])
    expect(Buffer.from(file).includes('greengages')).toBe(false)
    expect(await parquetReadObjects({ file })).toMatchObject([{ name: '[redacted]' }])
  })

  it('can be without rows', async () => {
    await expectSame([])
  })

  it('hold one number, and the least and the greatest there are', async () => {
    const limits = [0, 2 ** 31 - 1, -(2 ** 31), -1, 2 ** 31 - 1, 2 ** 31 - 2, 1, -(2 ** 31)]
    // Around the lengths at which packed numbers begin a new part.
    const lengths = [1, 2, 31, 32, 33, 34, 127, 128, 129, 130, 257]
    await expectSame(
      lengths.map((length, number) => ({
        name: 'always the same',
        note: number % 2 === 0 ? undefined : 'now and then',
        number: limits[number % limits.length]!,
        reward: number % 3 === 0 ? Number.MAX_VALUE : -Number.MIN_VALUE,
        ids: Int32Array.from({ length }, (_, at) => limits[(at * (number + 1)) % limits.length]!),
        mask: new Uint8Array(length).fill(number % 2),
        logprobs: new Float32Array(length).fill(number % 3 === 0 ? Number.NaN : -0.25),
        credit: new Float64Array(length).fill(1 / 3),
      })),
    )
  })

  it('hold a million numbers in one list', async () => {
    const length = 1_000_000
    await expectSame([
      {
        name: '',
        number: 0,
        ids: Int32Array.from({ length }, (_, at) => Math.imul(at, 0x9e3779b1) >>> 15),
        mask: Uint8Array.from({ length }, (_, at) => at & 1),
        logprobs: new Float32Array(length),
      },
    ])
  })

  it('refuse what does not fit into a column', async () => {
    const row = {
      name: 'a',
      number: 1,
      ids: Int32Array.of(1),
      mask: Uint8Array.of(1),
      logprobs: Float32Array.of(0),
    }
    await expect(write([{ ...row, number: 2 ** 31 }])).rejects.toThrow('number holds integers')
    await expect(write([{ ...row, number: 0.5 }])).rejects.toThrow('number holds integers')
    await expect(write([{ ...row, name: undefined }])).rejects.toThrow('name needs a value')
    await expect(write([{ ...row, name: 3 }])).rejects.toThrow('name holds a text')
  })

  it('say within which bounds the values of a row group lie', async () => {
    const rows = [3, -7, 5].map(number => ({
      name: number > 0 ? 'ä' : 'a',
      number,
      reward: number === 5 ? undefined : 0,
      ids: Int32Array.of(),
      mask: Uint8Array.of(),
      logprobs: Float32Array.of(),
    }))
    const { row_groups } = parquetMetadata(await write([...rows, ...rows]))
    const statistics = row_groups[0]!.columns.map(({ meta_data }) => meta_data!.statistics!)
    expect(statistics[0]).toMatchObject({ min_value: 'a', max_value: 'ä', null_count: 0n })
    expect(statistics[2]).toMatchObject({ min_value: -7, max_value: 5 })
    expect(statistics[3]).toMatchObject({ min_value: -0, max_value: 0, null_count: 2n })
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
    expect(metadata.row_groups[0]!.columns[6]!.meta_data!.codec).toBe('SNAPPY')
    expect(metadata.key_value_metadata).toEqual([{ key: 'run', value: 'test' }])
  })
})
