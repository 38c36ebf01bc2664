import { coverageOf, type Stretch, type TrajectoryImportance } from '../../base/core/credit.ts'
import type { Trajectory } from '../../base/core/trajectory.ts'
import { type Place, pathTo, type Tree } from '../../base/core/tree.ts'
import type { ReadPath, ReadTrajectory } from '../sinks/reader.ts'

/** What the sampled tokens of a tree are worth to its trajectories, by their ids and then by node. */
export type ImportedCredit = Map<string, Map<number, Float64Array>>

/** Adds what the row of a file says of the tokens on its path, which ends at `end`. */
export function addCredit(
  credit: ImportedCredit,
  tree: Tree,
  { passages = [], end, owner }: Pick<ReadPath, 'passages'> & { end: Place; owner: string },
): void {
  for (const { node, start, length } of pathTo(tree, end)) {
    const size = tree.nodes[node]!.segment.ids.length
    for (const run of passages) {
      const from = Math.max(run.start - start, 0)
      const to = Math.min(run.end - start, length)
      if (from >= to) continue
      for (const { trajectory = owner, advantage } of run.value) {
        const values = valuesOf(credit, trajectory, { node, size })
        for (let token = from; token < to; token++) values[token]! += advantage
      }
    }
  }
}

function valuesOf(
  credit: ImportedCredit,
  trajectory: string,
  { node, size }: { readonly node: number; readonly size: number },
): Float64Array {
  const nodes = credit.get(trajectory) ?? new Map<number, Float64Array>()
  credit.set(trajectory, nodes)
  const values = nodes.get(node) ?? new Float64Array(size)
  nodes.set(node, values)
  return values
}

/** The parts of a trajectory whose tokens are worth something else to it than its own advantage. */
export function stretchesOf(
  tree: Tree,
  trajectory: Trajectory,
  { advantage, credit }: { readonly advantage: number | null; readonly credit: ImportedCredit },
): readonly Stretch[] {
  const nodes = credit.get(trajectory.id)
  if (!nodes || advantage === null) return []
  const stretches: Stretch[] = []
  for (const [node, length] of coverageOf(tree, trajectory)) {
    if (tree.nodes[node]!.segment.origin !== 'sampled') continue
    const values = nodes.get(node) ?? new Float64Array(length)
    let start = 0
    for (let end = 1; end <= length; end++) {
      if (end < length && values[end] === values[start]) continue
      if (values[start] !== advantage)
        stretches.push({ node, start, end, advantage: values[start]! })
      start = end
    }
  }
  return stretches
}

/** Importance weights of sampled tokens, by node: alike for all who pass. */
export type ImportedImportance = Map<number, Float64Array>

/** Adds the importance weights of the tokens that the row of a file trains; its path ends at `end`. */
export function addImportance(
  all: ImportedImportance,
  tree: Tree,
  { importance, end }: Pick<ReadPath, 'importance'> & { readonly end: Place },
): void {
  if (!importance) return
  for (const { node, start, length } of pathTo(tree, end)) {
    const size = tree.nodes[node]!.segment.ids.length
    const weights = all.get(node) ?? new Float64Array(size).fill(1)
    all.set(node, weights)
    for (let token = 0; token < length; token++) {
      const weight = importance[start + token]!
      if (!Number.isNaN(weight)) weights[token] = weight
    }
  }
}

/** The importance weights of a trajectory whose file has some. */
export function importanceOf(
  tree: Tree,
  trajectory: Trajectory,
  { source, weights }: { readonly source: ReadTrajectory; readonly weights: ImportedImportance },
): TrajectoryImportance | undefined {
  if (!source.importance) return undefined
  const nodes = new Map<number, Float64Array>()
  for (const [node, length] of coverageOf(tree, trajectory)) {
    if (tree.nodes[node]!.segment.origin !== 'sampled') continue
    nodes.set(node, weights.get(node)?.slice(0, length) ?? new Float64Array(length).fill(1))
  }
  return { ...source.importance, nodes }
}
