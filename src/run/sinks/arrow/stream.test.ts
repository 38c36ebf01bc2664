import { readFileSync } from 'node:fs'
import { expect, it } from 'vitest'
import { rowColumns, toCells } from '../formats/parquet.ts'
import { arrowStream } from './stream.ts'

/** Two rows, between them with every kind of column, and each kind missing once. */
const rows = [
  {
    ...{ run: 'r', group: 'g', tree: 'g/0', trajectory: 'g/0/0', row: 0, rows: 1 },
    ...{ task: 'Straße', member: 0, ids: [1, 2, 3], mask: [0, 1, 1], logprobs: [null, -0.5, -1] },
    ...{
      origins: [[0, 1, 'prompt']],
      versions: [],
      reward: 1.5,
      rewards: { a: 1 },
      advantage: null,
    },
    ...{ outcome: { kind: 'completed' }, sampling: {}, basis: 'raw', messages: [], tools: [] },
    ...{ fidelity: {}, filtered: null, usage: {} },
  },
  {
    ...{ run: 'r', group: 'g', tree: 'g/1', trajectory: 'g/1/0', row: 0, rows: 1 },
    ...{
      task: 't',
      member: 1,
      seat: 'x',
      ids: [],
      mask: [],
      logprobs: [],
      origins: [],
      versions: [],
    },
    ...{ reward: null, rewards: {}, advantage: -2, tokenAdvantages: [0.25] },
    ...{ outcome: { kind: 'completed' }, sampling: {}, basis: 'raw', messages: [], tools: [] },
    ...{ fidelity: {}, usage: {}, step: 3 },
  },
]

// `python -c "import pyarrow.ipc as i; t = i.open_stream('test/fixtures/rows.arrow').read_all(); t.validate(full=True); print(t.to_pylist())"`
it('writes rows as the stream that pyarrow 26 was seen to read, value by value', () => {
  const cells = rows.map(row => toCells([row]))
  const stream = arrowStream(rowColumns, cells, { 'espalier.cursor': '7' })
  expect(stream.equals(readFileSync('test/fixtures/rows.arrow'))).toBe(true)
})
