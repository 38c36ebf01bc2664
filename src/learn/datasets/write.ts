import { createHash } from 'node:crypto'
import { type FileHandle, open } from 'node:fs/promises'
import { jsonWithoutSecrets } from '../../base/core/process/secrets.ts'
import { openTable } from '../../run/sinks/parquet/open-table.ts'
import type { Table } from '../../run/sinks/parquet/table.ts'
import type { DatasetRow } from './build.ts'
import type { Split } from './splits.ts'
import type { Work } from './work.ts'

/** Where the rows of a set go. */
export interface WriteOptions {
  readonly out: string
  readonly splits: readonly Split[]
  readonly splitOf: (subject: string) => string
}

/** What was written. */
export interface Written {
  readonly rows: Readonly<Record<string, number>>
  readonly duplicates: number
}

/** Writes the rows in the order of their items, each into its split; a second row that says the same is left out. */
export async function writeSplits(
  work: Work,
  order: readonly string[],
  { out, splits, splitOf }: WriteOptions,
): Promise<Written> {
  const targets = new Map<string, Target>()
  for (const { name } of splits) targets.set(name, await openTarget(fileOf(out, name)))
  const seen = new Set<string>()
  let duplicates = 0
  try {
    for (const id of order) {
      for (const row of await work.rowsOf(id)) {
        const key = createHash('sha256').update(row.key).digest('base64')
        if (seen.has(key)) duplicates++
        else {
          seen.add(key)
          await targets.get(splitOf(row.subject))!.write(row)
        }
      }
    }
    for (const target of targets.values()) await target.end()
  } finally {
    for (const target of targets.values()) await target.close()
  }
  const named = [...targets].map(([name, { rows }]) => [name || 'all', rows] as const)
  return { rows: Object.fromEntries(named), duplicates }
}

/** `set.jsonl` of the split `train` is `set.train.jsonl`. */
export function fileOf(out: string, split: string): string {
  if (split === '') return out
  const dot = out.lastIndexOf('.')
  return `${out.slice(0, dot)}.${split}${out.slice(dot)}`
}

interface Target {
  readonly rows: number
  write(row: DatasetRow): Promise<void>
  end(): Promise<void>
  close(): Promise<void>
}

async function openTarget(path: string): Promise<Target> {
  const file = await open(path, 'w')
  const format = path.endsWith('.parquet') ? parquetOf(file) : linesOf(file)
  let rows = 0
  return {
    get rows() {
      return rows
    },
    async write(row) {
      rows++
      await format.append(row)
    },
    end: format.end,
    close: () => file.close(),
  }
}

interface Format {
  append(row: DatasetRow): Promise<void>
  end(): Promise<void>
}

/** Nothing but OpenAI's fields: their API refuses lines with others. */
function linesOf(file: FileHandle): Format {
  return {
    append: ({ example }) => file.appendFile(`${jsonWithoutSecrets(example)}\n`),
    end: async () => {},
  }
}

/** Messages, tools and notes as JSON texts, beside the id. */
function parquetOf(file: FileHandle): Format {
  const columns = ['id', 'subject', 'messages', 'tools', 'notes'].map(
    name => ({ name, kind: 'text' }) as const,
  )
  const table: Table = openTable(
    { write: async bytes => void (await file.appendFile(bytes)) },
    columns,
    {},
  )
  return {
    append: ({ id, subject, example, notes }) =>
      table.append({
        id,
        subject,
        messages: JSON.stringify(example.messages),
        tools: JSON.stringify(example.tools ?? []),
        notes: JSON.stringify(notes),
      }),
    end: () => table.end(),
  }
}
