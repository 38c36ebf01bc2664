import { leafWeight } from '../src/base/core/credit.ts'
import { type Row, rowsOf } from '../src/base/core/row.ts'
import type { Tree } from '../src/base/core/tree.ts'
import { offsetsOf } from '../src/base/math/batch.ts'
import type { PolicyTokens } from '../src/base/math/loss.ts'
import { pathLoss } from '../src/base/math/paths.ts'
import { random, seedOf } from '../src/base/math/random.ts'
import { lossNamed } from '../src/base/math/registry.ts'
import { pathsOf } from '../src/run/rows/paths.ts'
import { randomCredits, randomTree } from './random-tree.ts'
import { openTrainer, tinyKernels, tinyShape } from './tiny-trainer.ts'

/** How far two gradients of all parameters are apart. */
export interface GradientDifference {
  readonly trees: number
  /** The largest difference of a parameter, as a share of the largest slope. */
  readonly largest: number
  /** Tokens that went forward, each once, and once for every path. */
  readonly once: number
  readonly paths: number
}

/**
 * The embedded model's float32 gradient by a loss on random trees: forward over rows that hold each
 * token once, against forward over every trajectory's full paths.
 */
export async function floatDifference(loss: string, seeds: number): Promise<GradientDifference> {
  const { trainer, gradient } = await openTrainer(tinyKernels[0].module)
  const found = { trees: 0, largest: 0, once: 0, paths: 0 }
  for (let seed = 0; seed < seeds; seed++) {
    const tree = smallVocabulary(randomTree(seed), tinyShape.vocabulary)
    const credits = randomCredits(tree, seed, trajectory => leafWeight(trajectory, 'branch'))
    const once = rowsOf(tree, { credits, weighting: 'branch' })
    const paths = rowsOf(tree, { credits, weighting: 'branch', form: 'paths' })
    if (paths.length === 0 || paths.some(({ ids }) => ids.length > tinyShape.context)) continue
    const slopesOf = (rows: readonly Row[], toGradient: ToGradient): Float32Array => {
      gradient.fill(0)
      const orders = rows.map(({ ids, mask }) => ({ ids, mask, temperature: 1 }))
      const { logprobs } = trainer.forward(orders, { keep: true })
      const slopes = toGradient(rows, spread(rows, logprobs))
      const wanted = slopes.filter((_, token) => maskOf(rows)[token] === 1)
      trainer.backward({
        logprobs: Float32Array.from(wanted),
        entropies: new Float32Array(wanted.length),
      })
      return gradient.slice()
    }
    const first = slopesOf(once, overPaths(loss, seed))
    const second = slopesOf(paths, overRows(loss, seed))
    found.trees++
    found.largest = Math.max(found.largest, relative(first, second))
    found.once += tokensOf(once)
    found.paths += tokensOf(paths)
  }
  return found
}

type ToGradient = (rows: readonly Row[], logprobs: Float64Array) => Float64Array

const overPaths =
  (loss: string, seed: number): ToGradient =>
  (rows, logprobs) => {
    const { paths } = pathsOf(rows.map(row => ({ row, length: row.ids.length })))
    return pathLoss(lossNamed(loss), paths, { logprobs, oldLogprobs: older(rows, logprobs, seed) })
      .gradient
  }

/** Rows of the form `paths` as a batch: rows of one trajectory have one number. */
const overRows =
  (loss: string, seed: number): ToGradient =>
  (rows, logprobs) => {
    const names = [...new Set(rows.map(({ trajectory }) => trajectory.id))]
    const weightOf = (row: Row): number => row.weights[row.mask.indexOf(1)]!
    const tokens: PolicyTokens = {
      offsets: offsetsOf(rows.map(({ ids }) => ids.length)),
      mask: maskOf(rows),
      trajectory: Int32Array.from(rows, ({ trajectory }) => names.indexOf(trajectory.id)),
      trajectoryWeights: Float64Array.from(names, name =>
        weightOf(rows.find(({ trajectory }) => trajectory.id === name)!),
      ),
      advantages: Float64Array.from(rows.flatMap(({ advantages }) => [...advantages])),
      logprobs,
      oldLogprobs: older(rows, logprobs, seed),
    }
    return lossNamed(loss)(tokens).gradient
  }

/** Ratios up to e^0.5 away from 1, the same for a token wherever it stands. */
function older(rows: readonly Row[], logprobs: Float64Array, seed: number): Float64Array {
  const names = rows.flatMap(({ ids }) => [...ids].map((_, at) => ids.subarray(0, at + 1).join()))
  return logprobs.map((value, token) => value - random(seedOf(seed, names[token]!))() + 0.5)
}

function maskOf(rows: readonly Row[]): Uint8Array {
  return Uint8Array.from(rows.flatMap(({ mask }) => [...mask]))
}

function spread(rows: readonly Row[], wanted: Float32Array): Float64Array {
  let next = 0
  return Float64Array.from(maskOf(rows), bit => (bit === 1 ? wanted[next++]! : 0))
}

function tokensOf(rows: readonly Row[]): number {
  return rows.reduce((sum, { ids }) => sum + ids.length, 0)
}

function relative(a: Float32Array, b: Float32Array): number {
  const most = b.reduce((largest, value) => Math.max(largest, Math.abs(value)), 0)
  const apart = a.reduce((far, value, at) => Math.max(far, Math.abs(value - b[at]!)), 0)
  return apart === 0 ? 0 : apart / most
}

/** The same tree with ids that the tiny model knows. */
function smallVocabulary(tree: Tree, size: number): Tree {
  const nodes = tree.nodes.map(node => ({
    ...node,
    segment: { ...node.segment, ids: node.segment.ids.map(id => id % size) },
  }))
  return { ...tree, nodes } as Tree
}
