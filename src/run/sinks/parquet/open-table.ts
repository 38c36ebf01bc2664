import type { Output } from '../format.ts'
import type { Column } from './columns.ts'
import type { Table } from './table.ts'

/**
 * Opens a Parquet file. The writer's many modules are loaded with the first row, since most programs
 * never need them.
 */
export function openTable(
  output: Output,
  columns: readonly Column[],
  metadata: Readonly<Record<string, string>>,
): Table {
  let opened: Promise<Table> | undefined
  const table = (): Promise<Table> => {
    opened ??= import('./table.ts').then(({ beginTable }) => beginTable(output, columns, metadata))
    return opened
  }
  return {
    append: async row => (await table()).append(row),
    end: async () => (await table()).end(),
  }
}
