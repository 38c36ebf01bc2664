import type { Fields } from '../fields.ts'

/** Gathers records that follow each other with the same key; only one run of them is in memory. */
export async function* consecutive(
  records: AsyncIterable<Fields>,
  keyOf: (record: Fields) => string,
): AsyncGenerator<readonly Fields[]> {
  let run: Fields[] = []
  let key: string | undefined
  for await (const record of records) {
    const next = keyOf(record)
    if (run.length > 0 && next !== key) {
      yield run
      run = []
    }
    key = next
    run.push(record)
  }
  if (run.length > 0) yield run
}
