import { describe, expect, it } from 'vitest'
import { emptyTree, endAt, randomCredits, randomTree } from '../../../test/random-tree.ts'
import { leafWeightNames } from '../math/credit.ts'
import { type Credit, coverageOf, leafWeight } from './credit.ts'
import type { Row } from './row.ts'
import { rowsOf } from './row.ts'
import { given, sampled } from './segment.ts'
import { idsTo, pathEnds, pathTo, root, type Tree } from './tree.ts'

const seeds = Number(process.env.ESPALIER_SOAK ?? 1) * 400
const version = { from: 1, to: 1 }
const sample = (...ids: number[]) =>
  sampled({ ids: Int32Array.from(ids), logprobs: Float32Array.from(ids, () => -1), version })
const observe = (...ids: number[]) => given('observed', Int32Array.from(ids))

/** Loss gradient per token of the tree when every trajectory is trained as its own full paths. */
function fullPathGradient(tree: Tree, credits: readonly Credit[]): Map<string, number[]> {
  const gradient = new Map<string, number[]>()
  for (const { trajectory, advantage, weight } of credits) {
    const found = tree.trajectories.find(({ id }) => id === trajectory)!
    for (const [node, length] of coverageOf(tree, found)) {
      if (tree.nodes[node]!.segment.origin !== 'sampled') continue
      for (let offset = 0; offset < length; offset++) {
        const key = `${node}:${offset}`
        const entry = gradient.get(key) ?? [0, 0, 0]
        gradient.set(key, [entry[0]! + weight * advantage, entry[1]! + weight, entry[2]! + 1])
      }
    }
  }
  return gradient
}

/** The same from rows that train each token once. */
function rowGradient(tree: Tree, rows: readonly Row[]): Map<string, number> {
  const gradient = new Map<string, number>()
  for (const row of rows) {
    const end = pathEnds(tree, row.trajectory.end).find(place =>
      isSameIds(idsTo(tree, place), row.ids),
    )!
    for (const { node, start, length } of pathTo(tree, end)) {
      for (let offset = 0; offset < length; offset++) {
        if (row.mask[start + offset] !== 1) continue
        const key = `${node}:${offset}`
        expect(gradient.has(key), `token ${key} is trained twice`).toBe(false)
        gradient.set(key, row.advantages[start + offset]! * row.weights[start + offset]!)
      }
    }
  }
  return gradient
}

function isSameIds(a: Int32Array, b: Int32Array): boolean {
  return Buffer.from(a.buffer).equals(Buffer.from(b.buffer))
}

describe('rows', () => {
  for (const weighting of leafWeightNames) {
    it(`[T5] training rows once equals training every full path, leaves weighed ${weighting}`, () => {
      for (let seed = 0; seed < seeds; seed++) {
        const tree = randomTree(seed)
        const credits = randomCredits(tree, seed, trajectory => leafWeight(trajectory, weighting))
        const expected = fullPathGradient(tree, credits)
        const actual = rowGradient(tree, rowsOf(tree, { credits, weighting }))
        expect([...actual.keys()].sort()).toEqual([...expected.keys()].sort())
        for (const [key, [sum, weight]] of expected as Map<string, [number, number, number]>) {
          const full = weighting === 'hard' ? sum / weight : sum
          expect(Math.abs(actual.get(key)! - full)).toBeLessThan(1e-9)
        }
      }
    })
  }

  it('[T5] a chain gives one row whose sampled tokens are all trained', () => {
    const tree = emptyTree()
    const opening = tree.append(root, given('prompt', Int32Array.of(1, 2)))
    const first = tree.append(opening, sample(3, 4))
    const end = tree.append(tree.append(first, observe(5)), sample(6))
    tree.end(endAt(tree, end))
    const credits = [{ trajectory: tree.trajectories[0]!.id, advantage: 0.5, weight: 1 }]
    const [row, ...more] = rowsOf(tree, { credits })
    expect(more).toEqual([])
    expect([...row!.ids]).toEqual([1, 2, 3, 4, 5, 6])
    expect([...row!.mask]).toEqual([0, 0, 1, 1, 0, 1])
    expect([...row!.logprobs]).toEqual([0, 0, -1, -1, 0, -1])
    expect([...row!.advantages]).toEqual([0, 0, 0.5, 0.5, 0, 0.5])
    expect(row!.origins.map(({ start, end, value }) => [start, end, value])).toEqual([
      [0, 2, 'prompt'],
      [2, 4, 'sampled'],
      [4, 5, 'observed'],
      [5, 6, 'sampled'],
    ])
  })

  it('[T4] a rewrite makes a second row in which what was carried over is not trained', () => {
    const tree = emptyTree()
    const old = tree.append(tree.append(root, given('prompt', Int32Array.of(1))), sample(2, 3))
    const lineage = { kind: 'rewrites', of: old, by: 'condenser', reason: 'too long' } as const
    const fresh = tree.append(root, observe(1, 3), lineage)
    tree.end(endAt(tree, tree.append(fresh, sample(9))))
    const credits = [{ trajectory: tree.trajectories[0]!.id, advantage: 1, weight: 1 }]
    const rows = rowsOf(tree, { credits })
    expect(rows.map(row => [[...row.ids], [...row.mask], row.index, row.count])).toEqual([
      [[1, 2, 3], [0, 1, 1], 0, 2],
      [[1, 3, 9], [0, 0, 1], 1, 2],
    ])
  })

  it('a token loses its loss only when every trajectory through it is dropped', () => {
    const tree = emptyTree()
    const shared = tree.append(tree.append(root, given('prompt', Int32Array.of(1))), sample(2))
    tree.end(endAt(tree, tree.append(tree.append(shared, observe(3)), sample(4))))
    tree.end(endAt(tree, tree.append(tree.append(shared, observe(5)), sample(6))))
    const credits = [{ trajectory: tree.trajectories[1]!.id, advantage: -1, weight: 1 }]
    const rows = rowsOf(tree, { credits })
    expect(rows.map(row => [[...row.ids], [...row.mask]])).toEqual([
      [
        [1, 2, 5, 6],
        [0, 1, 0, 1],
      ],
    ])
  })
})
