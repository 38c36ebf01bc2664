import { mkdtempSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { parquetWriteBuffer } from 'hyparquet-writer'
import { describe, expect, it } from 'vitest'
import { parquetRows } from './parquet-rows.ts'

function fileOf(name: string, rows: number): string {
  const path = join(mkdtempSync(join(tmpdir(), 'espalier-parquet-')), name)
  const data = new Array<string>(rows).fill('the same')
  const bytes = parquetWriteBuffer({ columnData: [{ name: 'prompt', data, type: 'STRING' }] })
  writeFileSync(path, Buffer.from(bytes))
  return path
}

describe('rows of a parquet file', () => {
  it('come as they are, of a value that is repeated too', async () => {
    const rows: unknown[] = []
    for await (const row of parquetRows(fileOf('few.parquet', 1000))) rows.push(row)
    expect([rows.length, rows.at(-1)]).toEqual([1000, { prompt: 'the same' }])
  })

  it('H6: are refused before they are read where a few bytes say that they are millions', async () => {
    const rows = parquetRows(fileOf('swollen.parquet', 1_100_000))
    await expect(rows.next()).rejects.toThrow(/1100000 values in \d+ bytes, which is more than/)
  })
})
