import type { Group } from '../../core/group.ts'
import { neutralFeatures } from '../features.ts'
import type { Format } from '../format.ts'
import { rowsFor } from '../forms.ts'
import { openTable } from '../parquet/open-table.ts'
import type { Cell, Column } from '../parquet/table.ts'
import type { MemberRow } from '../row-record.ts'
import { neutralTraining, rowHead, rowTail } from './jsonl.ts'

/** The columns: the fields of the neutral format, what is nested as JSON text. */
const columns: readonly Column[] = [
  { name: 'run', kind: 'text' },
  { name: 'group', kind: 'text' },
  { name: 'tree', kind: 'text' },
  { name: 'trajectory', kind: 'text' },
  { name: 'row', kind: 'integer' },
  { name: 'rows', kind: 'integer' },
  { name: 'task', kind: 'text' },
  { name: 'member', kind: 'integer' },
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
  { name: 'trajectories', kind: 'text', isOptional: true },
  { name: 'passages', kind: 'text', isOptional: true },
  { name: 'outcome', kind: 'text' },
  { name: 'sampling', kind: 'text' },
  { name: 'basis', kind: 'text' },
  { name: 'bases', kind: 'text', isOptional: true },
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
  summary: 'The neutral rows as a table with typed lists, for pandas, DuckDB and datasets',
  carries: neutralFeatures,
  training: neutralTraining,
  open(output, { run, volatile, ...options }) {
    const table = openTable(output, columns, { 'espalier.format': '1', 'espalier.run': run })
    return {
      async write({ group }) {
        const rows = rowsFor({ name: 'parquet', training: neutralTraining }, group, options)
        for (const row of rows) await table.append(toCells(run, group, { row, volatile }))
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

function toCells(
  run: string,
  group: Group,
  { row, volatile }: { readonly row: MemberRow; readonly volatile: boolean },
): Readonly<Record<string, Cell>> {
  const fields: Readonly<Record<string, unknown>> = {
    ...rowHead(run, group, row),
    ...rowTail(group, row, volatile),
  }
  return Object.fromEntries(columns.map(({ name, kind }) => [name, toCell(fields[name], kind)]))
}

function toCell(value: unknown, kind: Column['kind']): Cell {
  if (value === undefined || value === null) return undefined
  if (kind !== 'text' || typeof value === 'string') return value as Cell
  return JSON.stringify(value)
}
