import { writeFileSync } from 'node:fs'
import { random, seedOf } from '../../src/base/math/random.ts'
import type { Cell, Column } from '../../src/run/sinks/parquet/columns.ts'
import { openTable } from '../../src/run/sinks/parquet/open-table.ts'

const columns: readonly Column[] = [
  { name: 'name', kind: 'text' },
  { name: 'same', kind: 'text' },
  { name: 'note', kind: 'text', isOptional: true },
  { name: 'nothing', kind: 'text', isOptional: true },
  { name: 'number', kind: 'integer' },
  { name: 'reward', kind: 'number', isOptional: true },
  { name: 'ids', kind: 'int32' },
  { name: 'mask', kind: 'int8' },
  { name: 'logprobs', kind: 'float', hasGaps: true },
  { name: 'teacher', kind: 'float', hasGaps: true, isOptional: true },
  { name: 'credit', kind: 'double', isOptional: true },
]

const limits = [0, -1, 1, 2 ** 31 - 1, -(2 ** 31)]
/** None, one, around the sizes at which packed numbers begin a new part, and several pages. */
const lengths = [0, 1, 2, 3, 31, 32, 33, 127, 128, 129, 130, 257, 1000, 0, 0, 5, 1_000_000, 7]

/** Writes a table of everything that a file can hold at its limits, and the same as JSON beside it. */
export async function writeLimits(file: string): Promise<void> {
  const next = random(seedOf('limits', 3))
  const rows = lengths.map((length, number) => toRow(next, length, number))
  const chunks: Buffer[] = []
  const table = openTable({ write: chunk => void chunks.push(Buffer.from(chunk)) }, columns, {})
  for (const row of rows) await table.append(row)
  await table.end()
  writeFileSync(`${file}.parquet`, Buffer.concat(chunks))
  writeFileSync(`${file}.json`, JSON.stringify(rows.map(toPlain)))
}

function toRow(next: () => number, length: number, number: number): Record<string, Cell> {
  const anyId = (): number =>
    number % 2 === 0 && next() < 0.2
      ? limits[Math.floor(next() * limits.length)]!
      : Math.floor(next() ** 3 * 150_000)
  const logprob = (token: number): number => {
    if ((token >> 5) % 2 === 1) return 0
    return number === 6 || next() < 0.01 ? Number.NaN : -next() * 5
  }
  return {
    name: `row ${number} ${'äöü漢字😀\n"'.repeat(number * 3)}`,
    same: number % 5 === 0 ? 'another' : 'the same',
    note: number % 3 === 0 ? undefined : `${'x'.repeat(number * 1000)}${number}`,
    nothing: undefined,
    number: limits[number % limits.length],
    reward: number % 4 === 0 ? undefined : next() * 1e300,
    ids: Int32Array.from({ length }, anyId),
    mask: Uint8Array.from({ length }, (_, token) => (token >> (number % 5)) & 1),
    logprobs: Float32Array.from({ length }, (_, token) => logprob(token)),
    teacher: number % 3 === 0 ? undefined : Float32Array.from({ length }, () => -next()),
    credit: number % 3 === 1 ? undefined : new Float64Array(length).fill(1 / (number + 3)),
  }
}

function toPlain(row: Readonly<Record<string, Cell>>): object {
  return Object.fromEntries(
    columns.map(({ name }) => {
      const cell = row[name] ?? null
      // JSON writes NaN as null.
      return [name, ArrayBuffer.isView(cell) ? Array.from<number>(cell) : cell]
    }),
  )
}
