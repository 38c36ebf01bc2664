// The gradient of our loss over the paths of neutral rows, token by token.
//   tsx ours.ts ROWS LOGPROBS LOSS OPTIONS    prints one JSON list per row
// LOGPROBS holds a JSON list per row: the log-probability of every token now.
import { readFileSync } from 'node:fs'
import type { Passage } from '../../../src/base/core/credit.ts'
import type { TrajectoryId } from '../../../src/base/core/ids.ts'
import type { Run } from '../../../src/base/core/row.ts'
import { offsetsOf } from '../../../src/base/math/batch.ts'
import { pathLoss } from '../../../src/base/math/paths.ts'
import { lossNamed, type NamedOptions } from '../../../src/base/math/registry.ts'
import { pathsOf } from '../../../src/run/rows/paths.ts'

interface NeutralRow {
  readonly trajectory: TrajectoryId
  readonly ids: readonly number[]
  readonly mask: readonly number[]
  readonly logprobs: readonly number[]
  readonly proximalLogprobs?: readonly number[]
  readonly importance?: readonly number[]
  readonly advantage: number
  readonly passages?: readonly (readonly [number, number, readonly Passage[]])[]
}

const [rowsFile, logprobsFile, loss = 'ppo', options = '{}'] = process.argv.slice(2)
const lines = (file: string): readonly string[] =>
  readFileSync(file, 'utf8')
    .split('\n')
    .filter(line => line !== '')
const rows = lines(rowsFile!).map(line => JSON.parse(line) as NeutralRow)
const now = lines(logprobsFile!).map(line => JSON.parse(line) as readonly number[])

/** Rows without passages have one trajectory, of weight 1, worth their advantage. */
function passagesOf({ trajectory, mask, advantage, passages }: NeutralRow): Run<Passage[]>[] {
  if (passages) return passages.map(([start, end, value]) => ({ start, end, value: [...value] }))
  return mask.flatMap((bit, token) =>
    bit === 1
      ? [{ start: token, end: token + 1, value: [{ trajectory, advantage, weight: 1, share: 1 }] }]
      : [],
  )
}

const { paths } = pathsOf(
  rows.map(row => ({
    row: {
      passages: passagesOf(row),
      ...(row.importance && { importance: Float64Array.from(row.importance) }),
    },
    length: row.ids.length,
  })),
)
const { gradient } = pathLoss(lossNamed(loss), paths, {
  logprobs: Float64Array.from(now.flat()),
  // Importance weights are ratios up to the proximal policy, and the loss's own start there.
  oldLogprobs: Float64Array.from(
    rows.flatMap(row => [...((row.importance && row.proximalLogprobs) ?? row.logprobs)]),
  ),
  options: JSON.parse(options) as NamedOptions,
})
const offsets = offsetsOf(rows.map(({ ids }) => ids.length))
rows.forEach((_, row) => {
  console.log(JSON.stringify([...gradient.subarray(offsets[row], offsets[row + 1])]))
})
