import { UnknownPartError } from '../../../base/core/names/part-name.ts'
import type { Format } from '../format.ts'
import { art } from './art.ts'
import { atif } from './atif.ts'
import { inspect } from './inspect.ts'
import { jsonl } from './jsonl.ts'
import { parquet } from './parquet.ts'
import { openaiDpo, trlDpo } from './preference.ts'
import { rllm } from './rllm.ts'
import { skyrl } from './skyrl.ts'
import { slime } from './slime.ts'
import { openaiSft, trlSft } from './supervised.ts'
import { tauBench } from './tau-bench.ts'
import { tau2Bench } from './tau2-bench.ts'
import { tinker } from './tinker.ts'
import { trl } from './trl.ts'
import { verifiers } from './verifiers.ts'
import { verl } from './verl.ts'

/** Every format there is, the neutral ones first. */
export const formats: readonly Format[] = [
  jsonl,
  parquet,
  trl,
  trlSft,
  trlDpo,
  verl,
  slime,
  skyrl,
  verifiers,
  art,
  rllm,
  tinker,
  openaiSft,
  openaiDpo,
  atif,
  inspect,
  tauBench,
  tau2Bench,
]

/** The format of a name; an unknown one says which there are. */
export function formatNamed(name: string): Format {
  const found = formats.find(format => format.name === name)
  if (found) return found
  throw new UnknownPartError(
    'format',
    name,
    formats.map(format => format.name),
  )
}
