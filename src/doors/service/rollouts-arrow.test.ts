import { expect, it } from 'vitest'
import { arrowStream } from '../../run/sinks/arrow/stream.ts'
import { rowColumns, toCells } from '../../run/sinks/formats/parquet.ts'
import { RefusedRequest } from '../door/refused-request.ts'
import { toArrow } from './rollouts-arrow.ts'

it('gives rows of the neutral format as an Arrow table with the cursor, and refuses those of others', () => {
  const row = { task: 't', ids: [5], logprobs: [-0.5], messages: [{ role: 'user' }] }
  const about = { 'espalier.cursor': '2', 'espalier.state': 'finished' }
  const taken = (rows: Record<string, unknown>[]): Buffer =>
    toArrow({ cursor: 2, state: 'finished', groups: [{ rows }] })
  expect(taken([row]).equals(arrowStream(rowColumns, [toCells([row])], about))).toBe(true)
  expect(() => taken([{ prompt_ids: [5] }])).toThrow(RefusedRequest)
})
