// The lists of tokens of ready rows, written by `hyparquet-writer` in row groups of the same size as ours.
import { createWriteStream } from 'node:fs'
import { finished } from 'node:stream/promises'
import { ByteWriter, ParquetWriter } from 'hyparquet-writer'

const groupNumbers = 1 << 20
const kinds = { ids: 'INT32', mask: 'INT32', logprobs: 'FLOAT' } as const
const names = Object.keys(kinds) as (keyof typeof kinds)[]

/** Rows of which only the lists of tokens are written. */
export type ListRow = Readonly<Record<string, unknown>>

const schema = [
  { name: 'row', num_children: names.length },
  ...names.flatMap(name => [
    {
      name,
      repetition_type: 'REQUIRED' as const,
      num_children: 1,
      converted_type: 'LIST' as const,
    },
    { name: 'list', repetition_type: 'REPEATED' as const, num_children: 1 },
    { name: 'element', type: kinds[name], repetition_type: 'OPTIONAL' as const },
  ]),
]

/** Writes the rows; the library takes lists as arrays, with `null` for a missing number. */
export async function writeWithLibrary(rows: Iterable<ListRow>, file: string): Promise<void> {
  const stream = createWriteStream(file)
  const writer = Object.assign(new ByteWriter(), {
    flush() {
      stream.write(Buffer.from(writer.getBytes()))
      writer.index = 0
    },
    finish: () => writer.flush(),
  })
  const parquet = new ParquetWriter({ writer, schema })
  let batch: ListRow[] = []
  let numbers = 0
  const end = () => {
    const columnData = names.map(name => ({ name, data: batch.map(row => listOf(row[name])) }))
    if (batch.length > 0) parquet.write({ columnData, rowGroupSize: batch.length })
    batch = []
    numbers = 0
  }
  for (const row of rows) {
    batch.push(row)
    numbers += names.length * (row.ids as Int32Array).length
    if (numbers >= groupNumbers) end()
  }
  end()
  parquet.finish()
  stream.end()
  await finished(stream)
}

function listOf(value: unknown): (number | null)[] {
  return Array.from(value as Float32Array, number => (Number.isNaN(number) ? null : number))
}
