import { setImmediate as nextTurn } from 'node:timers/promises'
import { withoutSecrets } from '../../../base/core/process/secrets.ts'
import type { Output } from '../format.ts'
import { type Cell, type Column, isList } from './columns.ts'
import { beginFooter } from './footer.ts'
import { GrowingBytes } from './growing-bytes.ts'
import { type NumberList, writeNumberList } from './number-list.ts'
import { writeSingles } from './single.ts'

/** A table that is written row by row; only the rows of one row group are kept in memory. */
export interface Table {
  append(row: Readonly<Record<string, Cell>>): Promise<void>
  end(): Promise<void>
}

/** Numbers in lists after which a row group is written. */
const groupNumbers = 1 << 20
/** Characters in texts after which a row group is written. */
const groupCharacters = 1 << 24
const groupRows = 8192

const magic = Buffer.from('PAR1')

/** Begins a Parquet file. */
export function beginTable(
  output: Output,
  columns: readonly Column[],
  metadata: Readonly<Record<string, string>>,
): Table {
  const bytes = new GrowingBytes(1 << 16)
  const footer = beginFooter(columns, metadata)
  let cells: Cell[][] = columns.map(() => [])
  let rows = 0
  let numbers = 0
  let characters = 0
  /** Where in the file `bytes` begin. */
  let base = 0
  bytes.raw(magic)

  function keep(row: Readonly<Record<string, Cell>>): void {
    rows++
    for (let index = 0; index < columns.length; index++) {
      const given = row[columns[index]!.name]
      const cell = typeof given === 'string' ? withoutSecrets(given) : given
      cells[index]!.push(cell)
      if (typeof cell === 'object') numbers += cell.length
      else if (typeof cell === 'string') characters += cell.length
    }
  }

  async function drain(): Promise<void> {
    base += bytes.length
    await output.write(bytes.take())
  }

  async function flush(): Promise<void> {
    const start = bytes.length
    const chunks = columns.map((column, index) =>
      writeCells({ output: bytes, base }, column, cells[index]!),
    )
    footer.addRowGroup({ chunks, rows, size: bytes.length - start })
    cells = columns.map(() => [])
    rows = numbers = characters = 0
    await drain()
    // Whatever else the process does gets its turn.
    await nextTurn()
  }

  return {
    async append(row) {
      keep(row)
      const isFull = numbers >= groupNumbers || characters >= groupCharacters || rows >= groupRows
      if (isFull) await flush()
    },
    async end() {
      if (rows > 0) await flush()
      footer.end(bytes)
      bytes.raw(magic)
      await drain()
    },
  }
}

function writeCells(
  place: { readonly output: GrowingBytes; readonly base: number },
  column: Column,
  cells: readonly Cell[],
) {
  return isList(column)
    ? writeNumberList(place, column, cells as readonly (NumberList | undefined)[])
    : writeSingles(place, column, cells as readonly (string | number | undefined)[])
}
