import { gunzipSync } from 'node:zlib'

const compressors = { GZIP: (input: Uint8Array) => gunzipSync(input) }

/** The rows of a parquet file, one row group at a time, so that a table need not fit into memory. */
export async function* parquetRows(path: string): AsyncGenerator<Record<string, unknown>> {
  const { asyncBufferFromFile, parquetMetadataAsync, parquetReadObjects } = await import(
    'hyparquet'
  )
  const file = await asyncBufferFromFile(path)
  const metadata = await parquetMetadataAsync(file)
  let rowStart = 0
  for (const { num_rows } of metadata.row_groups) {
    const rowEnd = rowStart + Number(num_rows)
    yield* await parquetReadObjects({ file, metadata, rowStart, rowEnd, compressors })
    rowStart = rowEnd
  }
}
