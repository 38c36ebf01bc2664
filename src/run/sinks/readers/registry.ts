import { UnknownPartError } from '../../../base/core/names/part-name.ts'
import type { FormatReader } from '../reader.ts'
import { artReader, openaiSftReader, trlSftReader } from './messages.ts'
import { jsonlReader, parquetReader } from './neutral.ts'
import { aiSdkReader, otelReader } from './spans.ts'
import { atifReader, rllmReader } from './steps.ts'
import { tauBenchReader } from './tau-bench.ts'
import { skyrlReader, slimeReader, trlReader, verlReader } from './trainer-rows.ts'
import { verifiersReader } from './verifiers.ts'

/** Every format that carries enough to make a run of it. */
export const readers: readonly FormatReader[] = [
  jsonlReader,
  parquetReader,
  trlReader,
  trlSftReader,
  verlReader,
  slimeReader,
  skyrlReader,
  verifiersReader,
  artReader,
  rllmReader,
  openaiSftReader,
  atifReader,
  tauBenchReader,
  otelReader,
  aiSdkReader,
]

/** Why the other formats are not read back. */
const missing: Readonly<Record<string, string>> = {
  tinker: 'it keeps neither rewards nor messages nor groups',
  'trl-dpo': 'a pair tells which of two was better, not what either was worth',
  'openai-dpo': 'a pair tells which of two was better, not what either was worth',
}

/** The reader of a format; one that cannot be read back says why. */
export function readerNamed(name: string): FormatReader {
  const found = readers.find(reader => reader.name === name)
  if (found) return found
  if (Object.hasOwn(missing, name)) {
    throw new Error(`${name} cannot be imported: ${missing[name]}`)
  }
  throw new UnknownPartError(
    'format to import',
    name,
    readers.map(reader => reader.name),
  )
}
