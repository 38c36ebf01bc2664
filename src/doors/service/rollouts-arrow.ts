import { withoutSecretsInJson } from '../../base/core/process/secrets.ts'
import { arrowStream } from '../../run/sinks/arrow/stream.ts'
import { rowColumns, toCells } from '../../run/sinks/formats/parquet.ts'
import { RefusedRequest } from '../door/refused-request.ts'
import type { FinishedGroup } from './rollouts-api.ts'

/** The media type of a stream of Arrow's IPC format. */
export const arrowType = 'application/vnd.apache.arrow.stream'

const names = new Set(rowColumns.map(({ name }) => name))

/** What of an answer is in the table. */
interface Taken {
  readonly groups: readonly Pick<FinishedGroup, 'rows'>[]
  readonly cursor: number
  readonly state: string
}

/** The rows of finished groups as a table; what else the answer says is in the metadata of its schema. */
export function toArrow({ groups, cursor, state }: Taken): Buffer {
  const rows = JSON.parse(withoutSecretsInJson(JSON.stringify(groups.flatMap(each => each.rows))))
  const cells = (rows as FinishedGroup['rows']).map(row => {
    const strange = Object.keys(row).find(name => !names.has(name))
    if (strange === undefined) return toCells([row])
    throw new RefusedRequest(
      406,
      `${arrowType} holds rows of the format jsonl, which have no "${strange}"`,
    )
  })
  return arrowStream(rowColumns, cells, { 'espalier.cursor': `${cursor}`, 'espalier.state': state })
}
