import { describe, expect, it } from 'vitest'
import { chainGroup, plainTree, treeGroup } from '../../../test/export-runs.ts'
import { offsetsOf } from '../../base/math/batch.ts'
import { grpoLoss } from '../../base/math/losses/ppo.ts'
import { groupRows } from '../../run/rows/row-record.ts'
import { rowFactors } from './row-factors.ts'

describe('factors of rows for a trainer that sums', () => {
  const groups = [
    chainGroup([1, 0, 0.5], { rewritten: [0] }),
    plainTree(),
    treeGroup(3),
    treeGroup(5),
  ]

  it.each(['uniform', 'branch'] as const)(
    'make its sum the mean over trajectories, weighed %s',
    weighting => {
      const rows = groups
        .flatMap(group => groupRows(group, { weighting, form: 'paths' }))
        .filter(({ row }) => !row.logprobs.some(Number.isNaN))
      const names = [...new Set(rows.map(({ row }) => row.trajectory.id))]
      const flat = (pick: (row: (typeof rows)[number]['row']) => ArrayLike<number>): Float64Array =>
        Float64Array.from(rows.flatMap(({ row }) => Array.from(pick(row))))
      const wanted = grpoLoss({
        offsets: offsetsOf(rows.map(({ row }) => row.ids.length)),
        mask: Uint8Array.from(flat(row => row.mask)),
        trajectory: Int32Array.from(rows, ({ row }) => names.indexOf(row.trajectory.id)),
        trajectoryWeights: Float64Array.from(
          names,
          name =>
            rows.find(({ row }) => row.trajectory.id === name)!.row.passages[0]!.value[0]!.weight,
        ),
        advantages: flat(row => row.advantages),
        logprobs: flat(row => row.logprobs),
      }).gradient
      const factors = rowFactors(rows, { mean: 'sequences', divides: 'nothing' })
      const summed = Float64Array.from(
        rows.flatMap(({ row }, index) =>
          Array.from(
            row.advantages,
            (value, token) => -factors[index]! * value * row.weights[token]!,
          ),
        ),
      )
      const scale = wanted.find(value => value !== 0)! / summed.find(value => value !== 0)!
      summed.forEach((value, token) => {
        expect(Math.abs(value * scale - wanted[token]!)).toBeLessThan(1e-12)
      })
    },
  )

  it('multiply in again what a server divides a row by', () => {
    const rows = groupRows(chainGroup([1, 0], { rewritten: [0] }), { form: 'paths' })
    const plain = rowFactors(rows, { mean: 'tokens', divides: 'nothing' })
    const divided = rowFactors(rows, { mean: 'tokens', divides: 'rows' })
    expect(plain).toEqual(rows.map(() => 1))
    const lengths = rows.map(({ row }) => row.ids.length - 1)
    const shares = divided.map((factor, index) => factor / lengths[index]!)
    expect(new Set(shares.map(share => share.toFixed(12))).size).toBe(1)
  })
})
