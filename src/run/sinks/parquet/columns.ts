import type { NumberList, NumberListColumn } from './number-list.ts'
import type { SingleColumn } from './single.ts'

/** A column of a table. */
export type Column = NumberListColumn | SingleColumn

/** A value of a column; `undefined` if an optional one is not there. */
export type Cell = string | number | NumberList | undefined

/** Whether a column holds lists. */
export const isList = (column: Column): column is NumberListColumn =>
  column.kind !== 'text' && column.kind !== 'integer' && column.kind !== 'number'
