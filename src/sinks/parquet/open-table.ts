import type { Output } from '../format.ts'
import type { Column, Table } from './table.ts'

/**
 * Opens a Parquet file. What writes it is loaded with the first row: many modules, which most programs
 * that load this one never need.
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
