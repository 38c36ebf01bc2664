import { describe, expect, it } from 'vitest'
import { dice, emptyTree, endAt, randomCredits, randomTree } from '../../../test/random-tree.ts'
import { lossForms, numbersOf } from '../../../test/row-numbers.ts'
import { type Credit, coverageOf, leafWeight, turnByNode } from '../../base/core/credit.ts'
import { type Row, rowsOf } from '../../base/core/row.ts'
import { given, sampled } from '../../base/core/segment.ts'
import type { Trajectory } from '../../base/core/trajectory.ts'
import { idsTo, pathEnds, pathTo, root, type Tree } from '../../base/core/tree.ts'
import { offsetsOf } from '../../base/math/batch.ts'
import { type LeafWeighting, leafWeightNames } from '../../base/math/credit.ts'
import { pathLoss } from '../../base/math/paths.ts'
import { random, seedOf, shuffle } from '../../base/math/random.ts'
import { lossNamed, type NamedOptions } from '../../base/math/registry.ts'
import { pathsOf } from './paths.ts'

const seeds = Number(process.env.ESPALIER_SOAK ?? 1) * 25
type Gradient = ReadonlyMap<string, readonly [number, number]>

/** The tokens of a row by name: which token of which node. */
function keysOf(tree: Tree, row: Row): readonly string[] {
  const isOwn = (ids: Int32Array): boolean =>
    ids.length === row.ids.length && ids.every((id, token) => id === row.ids[token])
  const end = pathEnds(tree, row.trajectory.end).find(place => isOwn(idsTo(tree, place)))!
  return pathTo(tree, end).flatMap(({ node, length }) =>
    Array.from({ length }, (_, offset) => `${node}:${offset}`),
  )
}

/** What rows that hold each token once give, token by token. */
function ofRows(tree: Tree, rows: readonly Row[], train: Train): Gradient {
  const keys = rows.flatMap(row => keysOf(tree, row))
  const { paths } = pathsOf(rows.map(row => ({ row, length: row.ids.length })))
  const { gradient, entropyGradient } = pathLoss(lossNamed(train.loss), paths, {
    ...numbersOf(keys, train.seed),
    options: train.options,
  })
  const found = new Map<string, readonly [number, number]>()
  rows
    .flatMap(row => [...row.mask])
    .forEach((bit, token) => {
      if (bit === 0) return
      expect(found.has(keys[token]!), `${keys[token]} is trained twice`).toBe(false)
      found.set(keys[token]!, [gradient[token]!, entropyGradient![token]!])
    })
  return found
}

interface Train {
  readonly loss: string
  readonly options: NamedOptions
  readonly seed: number
}

interface Entry {
  readonly key: string
  readonly advantage: number
}

/** The tokens a trajectory passes through, each with what its credit says of it. */
function entriesOf(tree: Tree, credit: Credit): readonly Entry[] {
  const trajectory = tree.trajectories.find(({ id }) => id === credit.trajectory)!
  const turns = turnByNode(tree, trajectory)
  return [...coverageOf(tree, trajectory)].flatMap(([node, length]) =>
    tree.nodes[node]!.segment.origin !== 'sampled'
      ? []
      : Array.from({ length }, (_, offset) => ({
          key: `${node}:${offset}`,
          advantage:
            credit.stretches?.find(
              each => each.node === node && each.start <= offset && offset < each.end,
            )?.advantage ??
            credit.turns?.[turns.get(node)!] ??
            credit.advantage,
        })),
  )
}

/** What training every trajectory's full path as a row of its own gives. */
function ofFullPaths(
  tree: Tree,
  credits: readonly Credit[],
  { loss, options, seed, weighting }: Train & { readonly weighting: LeafWeighting },
): Gradient {
  const paths = credits.map(credit => entriesOf(tree, credit))
  const entries = paths.flat()
  const through = new Map<string, number>()
  paths.forEach((path, index) => {
    for (const { key } of path) through.set(key, (through.get(key) ?? 0) + credits[index]!.weight)
  })
  const { gradient, entropyGradient } = lossNamed(loss)(
    {
      offsets: offsetsOf(paths.map(({ length }) => length)),
      trajectory: Int32Array.from(credits, (_, index) => index),
      trajectoryWeights: Float64Array.from(credits, ({ weight }) => weight),
      mask: new Uint8Array(entries.length).fill(1),
      advantages: Float64Array.from(entries, ({ advantage }) => advantage),
      weights: Float64Array.from(entries, ({ key }) =>
        weighting === 'hard' ? 1 / through.get(key)! : 1,
      ),
      ...numbersOf(
        entries.map(({ key }) => key),
        seed,
      ),
    },
    options,
  )
  const sums = new Map<string, readonly [number, number]>()
  entries.forEach(({ key }, entry) => {
    const [first, second] = sums.get(key) ?? [0, 0]
    sums.set(key, [first + gradient[entry]!, second + entropyGradient![entry]!])
  })
  return sums
}

function expectSame(found: Gradient, expected: Gradient): void {
  expect([...found.keys()].sort()).toEqual([...expected.keys()].sort())
  for (const [key, [first, second]] of expected) {
    const [a, b] = found.get(key)!
    if (Math.abs(a - first) < 1e-9 && Math.abs(b - second) < 1e-9) continue
    expect.fail(`token ${key}: ${a} and ${b} instead of ${first} and ${second}`)
  }
}

/** Credits of which some differ from turn to turn or inside turns. */
function variedCredits(tree: Tree, seed: number, weighting: LeafWeighting): readonly Credit[] {
  const { next, chance } = dice(seed + 5_000_000)
  const plain = randomCredits(tree, seed, trajectory => leafWeight(trajectory, weighting))
  return plain.map(credit => {
    const { turns } = tree.trajectories.find(({ id }) => id === credit.trajectory)!
    const first = turns[0]!.from
    const half = Math.ceil(tree.nodes[first]!.segment.ids.length / 2)
    return {
      ...credit,
      ...(chance(0.3) && { turns: turns.map(() => next() * 4 - 2) }),
      ...(chance(0.3) && {
        stretches: [{ node: first, start: 0, end: half, advantage: next() * 4 - 2 }],
      }),
    }
  })
}

function permuted(tree: Tree, seed: number): Tree {
  return { ...tree, trajectories: shuffle(tree.trajectories, random(seedOf('leaves', seed))) }
}

describe('[T5] the loss of trajectories over rows', () => {
  const shapes = [
    ['trees', 0.2],
    ['steps', 1],
  ] as const

  for (const [shape, rewrites] of shapes) {
    for (const weighting of leafWeightNames) {
      it(`is that of full paths, for every loss and order of leaves: ${shape}, ${weighting}`, () => {
        for (let seed = 0; seed < seeds; seed++) {
          const tree = randomTree(seed, { rewrites })
          const credits = variedCredits(tree, seed, weighting)
          if (credits.length === 0) continue
          const rows = rowsOf(tree, { credits, weighting })
          const other = permuted(tree, seed)
          const otherRows = rowsOf(other, { credits, weighting })
          for (const [loss, own] of lossForms) {
            const kl = { coefficient: 0.05, estimator: 'k3' }
            const train = { loss, options: { ...own, kl, entropy: 0.01 }, seed }
            const expected = ofFullPaths(tree, credits, { ...train, weighting })
            expectSame(ofRows(tree, rows, train), expected)
            expectSame(ofRows(other, otherRows, train), expected)
          }
        }
      })
    }
  }

  it('gives two suffixes behind a long prefix what their full paths give them', () => {
    const { tree, credits } = twoLeaves(90, 10)
    for (const trajectories of [tree.trajectories, tree.trajectories.toReversed()]) {
      const ordered = { ...tree, trajectories }
      const rows = rowsOf(ordered, { credits })
      const grpo = sumByNode(ordered, rows, { loss: 'grpo', ratio: 1 })
      expect(grpo.map(value => value.toFixed(6))).toEqual(['0.000000', '-0.050000', '0.050000'])
      const gspo = sumByNode(ordered, rows, { loss: 'gspo', ratio: 1 })
      expect(gspo[0]).toBeCloseTo(0, 12)
    }
  })

  it('keeps the force that draws a shared token back when its ratio is clipped', () => {
    const { tree, credits } = twoLeaves(1, 1)
    const rows = rowsOf(tree, { credits })
    const constant = { aggregation: { kind: 'constant', divisor: 1 } }
    const [prefix] = sumByNode(tree, rows, { loss: 'ppo', ratio: 1.5, options: constant })
    expect(prefix).toBeCloseTo(1.5, 12)
  })
})

/** A tree of one sampled prefix and two leaves, worth +1 and −1. */
function twoLeaves(shared: number, own: number): { tree: Tree; credits: readonly Credit[] } {
  const tree = emptyTree()
  const sample = (length: number) =>
    sampled({
      ids: Int32Array.from({ length }, (_, index) => index),
      logprobs: new Float32Array(length).fill(-1),
      version: { from: 1, to: 1 },
    })
  const prefix = tree.append(tree.append(root, given('prompt', Int32Array.of(1))), sample(shared))
  for (const seen of [1, 2]) {
    const from = tree.append(prefix, given('observed', Int32Array.of(seen)))
    tree.end(endAt(tree, tree.append(from, sample(own))))
  }
  const credits = tree.trajectories.map(({ id }: Trajectory, index) => ({
    trajectory: id,
    advantage: index === 0 ? 1 : -1,
    weight: 1,
  }))
  return { tree, credits }
}

/** The gradient summed over the sampled nodes of `twoLeaves`: the prefix, the two suffixes. */
function sumByNode(
  tree: Tree,
  rows: readonly Row[],
  { loss, ratio, options = {} }: { loss: string; ratio: number; options?: NamedOptions },
): readonly number[] {
  const keys = rows.flatMap(row => keysOf(tree, row))
  const { paths } = pathsOf(rows.map(row => ({ row, length: row.ids.length })))
  const logprobs = new Float64Array(keys.length).fill(-1)
  const oldLogprobs = logprobs.map(value => value - Math.log(ratio))
  const { gradient } = pathLoss(lossNamed(loss), paths, { logprobs, oldLogprobs, options })
  return [2, 4, 6].map(node =>
    gradient.reduce(
      (sum, value, token) => sum + (keys[token]!.startsWith(`${node}:`) ? value : 0),
      0,
    ),
  )
}
