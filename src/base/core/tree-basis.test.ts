import { describe, expect, it } from 'vitest'
import { emptyTree, endAt } from '../../../test/random-tree.ts'
import { plainSampling } from './policy.ts'
import { rowsOf } from './row.ts'
import { given, type LogprobBasis, sampled } from './segment.ts'
import { basisProblem, root, untemperedTokens } from './tree.ts'

const sample = (basis: LogprobBasis, ...ids: number[]) =>
  sampled({
    ids: Int32Array.from(ids),
    logprobs: Float32Array.from(ids, () => -1),
    version: { from: 1, to: 1 },
    basis,
  })

describe('the basis of log-probabilities', () => {
  it('is named where it is not what a trainer computes at the sampling temperature', () => {
    const warm = { ...plainSampling, temperature: 0.7 }
    expect(basisProblem(sample('tempered', 1), warm)).toBeUndefined()
    expect(basisProblem(sample('raw', 1), warm)).toBe('raw, before the temperature of 0.7')
    expect(basisProblem(sample('raw', 1), plainSampling)).toBeUndefined()
    expect(basisProblem(sample('raw', 1), { ...plainSampling, temperature: 0 })).toBeUndefined()
    const cut = { ...plainSampling, topP: 0.9, minP: 0.05 }
    expect(basisProblem(sample('tempered', 1), cut)).toMatch(/top-p 0.9 and min-p 0.05.*without/)
    expect(basisProblem(sample('renormalised', 1), cut)).toMatch(/after that cut/)
  })

  it('is told span by span where a row has several', () => {
    const tree = emptyTree()
    const first = tree.append(
      tree.append(root, given('prompt', Int32Array.of(1))),
      sample('tempered', 2, 3),
    )
    tree.end(endAt(tree, tree.append(first, sample('raw', 4))))
    const credits = [{ trajectory: tree.trajectories[0]!.id, advantage: 1, weight: 1 }]
    const [row] = rowsOf(tree, { credits })
    expect(row!.basis).toBe('raw')
    expect(row!.bases.map(({ start, end, value }) => [start, end, value])).toEqual([
      [1, 3, 'tempered'],
      [3, 4, 'raw'],
    ])
    const warm = { ...tree, sampling: { ...plainSampling, temperature: 0.5 } }
    expect([...untemperedTokens(warm)]).toEqual([['raw, before the temperature of 0.5', 1]])
  })
})
