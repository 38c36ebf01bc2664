import type { Group } from '../../../base/core/group.ts'
import { neutralFeatures } from '../features.ts'
import type { Format, FormatOptions, Output } from '../format.ts'
import { rowsFor } from '../forms.ts'
import { makeLossReport } from '../lost.ts'
import type { Cell, Column } from '../parquet/columns.ts'
import { openTable } from '../parquet/open-table.ts'
import type { Table } from '../parquet/table.ts'
import { neutralTraining, rowHead, rowTail } from './jsonl.ts'

/** The columns: the fields of the neutral format, what is nested as JSON text. */
export const rowColumns: readonly Column[] = [
  { name: 'run', kind: 'text' },
  { name: 'group', kind: 'text' },
  { name: 'tree', kind: 'text' },
  { name: 'trajectory', kind: 'text' },
  { name: 'row', kind: 'integer' },
  { name: 'rows', kind: 'integer' },
  { name: 'task', kind: 'text' },
  { name: 'member', kind: 'integer' },
  { name: 'seat', kind: 'text', isOptional: true },
  { name: 'ids', kind: 'int32' },
  { name: 'mask', kind: 'int8' },
  { name: 'logprobs', kind: 'float', hasGaps: true },
  { name: 'referenceLogprobs', kind: 'float', hasGaps: true, isOptional: true },
  { name: 'teacherLogprobs', kind: 'float', hasGaps: true, isOptional: true },
  { name: 'proximalLogprobs', kind: 'float', hasGaps: true, isOptional: true },
  { name: 'experts', kind: 'text', isOptional: true },
  { name: 'origins', kind: 'text' },
  { name: 'versions', kind: 'text' },
  { name: 'reward', kind: 'number', isOptional: true },
  { name: 'rewards', kind: 'text' },
  { name: 'advantage', kind: 'number', isOptional: true },
  { name: 'tokenAdvantages', kind: 'double', isOptional: true },
  { name: 'tokenWeights', kind: 'double', isOptional: true },
  { name: 'importance', kind: 'double', isOptional: true },
  { name: 'ratios', kind: 'text', isOptional: true },
  { name: 'trajectories', kind: 'text', isOptional: true },
  { name: 'passages', kind: 'text', isOptional: true },
  { name: 'outcome', kind: 'text' },
  { name: 'sampling', kind: 'text' },
  { name: 'basis', kind: 'text' },
  { name: 'bases', kind: 'text', isOptional: true },
  { name: 'cuts', kind: 'text', isOptional: true },
  { name: 'images', kind: 'text', isOptional: true },
  { name: 'messages', kind: 'text' },
  { name: 'tools', kind: 'text' },
  { name: 'report', kind: 'text', isOptional: true },
  { name: 'step', kind: 'integer', isOptional: true },
  { name: 'fidelity', kind: 'text' },
  { name: 'filtered', kind: 'text', isOptional: true },
  { name: 'usage', kind: 'text' },
  { name: 'seconds', kind: 'text', isOptional: true },
  { name: 'cached', kind: 'integer', isOptional: true },
  { name: 'server', kind: 'text', isOptional: true },
]

/** The neutral format as a table: typed lists for tokens, row groups, snappy. */
export const parquet: Format = {
  name: 'parquet',
  isWhole: true,
  summary: 'The neutral rows as a table with typed lists, for pandas, DuckDB and datasets',
  carries: neutralFeatures,
  training: neutralTraining,
  open(output, options) {
    const table = openRows(output, options.run)
    return {
      async write({ group }) {
        const rows = toRows(group, options)
        for (const row of rows) await table.append(row)
        return rows.length
      },
      end: () => table.end(),
    }
  },
  loading: file => [
    `python:  pq.read_table(${JSON.stringify(file)})   # or datasets.load_dataset("parquet", data_files=…)`,
    `duckdb:  SELECT task, avg(reward) FROM '${file}' GROUP BY task`,
  ],
}

/** Begins the table of a run's rows. */
export function openRows(output: Output, run: string): Table {
  return openTable(output, rowColumns, { 'espalier.format': '1', 'espalier.run': run })
}

/** The rows of a group, cell by cell. */
export function toRows(
  group: Group,
  {
    run,
    volatile,
    cuts,
    imageFile,
    lost = makeLossReport(),
    ...options
  }: Omit<FormatOptions, 'lost'> & Partial<Pick<FormatOptions, 'lost'>>,
): readonly Readonly<Record<string, Cell>>[] {
  return rowsFor({ name: 'parquet', training: neutralTraining }, group, { ...options, lost }).map(
    row => toCells([rowHead(run, group, row), rowTail(group, row, { volatile, cuts, imageFile })]),
  )
}

const texts = new Set(rowColumns.filter(({ kind }) => kind === 'text').map(({ name }) => name))

/** The cells of a row whose fields are in several objects. */
export function toCells(parts: readonly object[]): Readonly<Record<string, Cell>> {
  const cells: Record<string, Cell> = {}
  for (const part of parts) {
    for (const [name, value] of Object.entries(part)) {
      if (value === undefined || value === null) continue
      const isNested = typeof value !== 'string' && texts.has(name)
      cells[name] = isNested ? JSON.stringify(value) : (value as Cell)
    }
  }
  return cells
}
