import { gunzipSync } from 'node:zlib'
import type { FileMetaData } from 'hyparquet'

const compressors = {
  GZIP: (input: Uint8Array, outputLength: number) =>
    gunzipSync(input, { maxOutputLength: Math.max(1, outputLength) }),
}

/** Values that a column may have for each byte of its file, and in any case: dictionaries repeat one value for nothing. */
const mostValues = { perByte: 8, always: 2 ** 20 }

/** The rows of a parquet file, one row group at a time, so that a table need not fit into memory. */
export async function* parquetRows(path: string): AsyncGenerator<Record<string, unknown>> {
  const { asyncBufferFromFile, parquetMetadataAsync, parquetReadObjects } = await import(
    'hyparquet'
  )
  const file = await asyncBufferFromFile(path)
  const metadata = await parquetMetadataAsync(file)
  refuseSwollen(path, metadata, file.byteLength)
  let rowStart = 0
  for (const { num_rows } of metadata.row_groups) {
    const rowEnd = rowStart + Number(num_rows)
    yield* await parquetReadObjects({ file, metadata, rowStart, rowEnd, compressors })
    rowStart = rowEnd
  }
}

/** Throws if a file says that it has more values than its bytes can reasonably hold. */
function refuseSwollen(path: string, { row_groups }: FileMetaData, bytes: number): void {
  const most = Math.max(mostValues.always, bytes * mostValues.perByte)
  let rows = 0
  for (const { num_rows, columns } of row_groups) {
    rows += Number(num_rows)
    const values = columns.map(({ meta_data }) => Number(meta_data?.num_values ?? 0))
    const longest = values.reduce((longest, each) => Math.max(longest, each), rows)
    if (longest <= most) continue
    throw new Error(
      `${path} says that it has ${longest} values in ${bytes} bytes, which is more than the ${most} that are read from so few`,
    )
  }
}
