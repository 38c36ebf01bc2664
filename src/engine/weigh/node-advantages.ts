import { coverageOf, leafWeight, type Stretch } from '../../base/core/credit.ts'
import type { Group, Judged } from '../../base/core/group.ts'
import type { Tree } from '../../base/core/tree.ts'
import type { Advantages } from '../../base/math/advantage.ts'
import type { TreeNode } from '../../base/math/advantages/tree-rl.ts'
import type { LeafWeighting } from '../../base/math/credit.ts'
import { weightedMean } from '../../base/math/statistics.ts'
import { type Compared, comparedReward } from './compared.ts'

/** Sampled tokens that the same trajectories of a group pass through, one after the other. */
interface Part {
  readonly parent: Part | undefined
  /** The members that pass through it. */
  readonly through: readonly number[]
  readonly pieces: Omit<Stretch, 'advantage'>[]
}

/**
 * Compares a group by the nodes of its search trees: what is sampled between two branchings is one
 * node, and all trees of the group hang from one root, as the task is the same.
 */
export function compareNodes(
  group: Group<Judged>,
  weighting: LeafWeighting,
  compute: (nodes: readonly TreeNode[]) => Advantages,
): readonly Compared[] {
  const parts = partsOf(group.members)
  const place = new Map(parts.map((part, index) => [part, index + 1]))
  const leaves = group.members.map((member, index): TreeNode => {
    const last = parts.findLast(part => part.through.includes(index))
    const reward = comparedReward(member)
    const parent = last ? place.get(last)! : 0
    return { parent, reward, weight: leafWeight(member.trajectory, weighting) }
  })
  const inner = parts.map(({ parent }): TreeNode => ({ parent: parent ? place.get(parent)! : 0 }))
  const advantages = compute([{ parent: undefined }, ...inner, ...leaves])
  return group.members.map((member, index) => {
    if (comparedReward(member) === undefined) return { advantage: null }
    const own = parts.filter(part => part.through.includes(index))
    const stretches = own.flatMap(part =>
      part.pieces.map(piece => ({ ...piece, advantage: advantages[place.get(part)!]! })),
    )
    return stretches.length === 0
      ? { advantage: null }
      : { advantage: meanOf(stretches), stretches }
  })
}

function meanOf(stretches: readonly Stretch[]): number {
  return weightedMean(
    stretches.map(({ advantage }) => advantage),
    stretches.map(({ start, end }) => end - start),
  )
}

/** The parts of all trees, parents before their children. */
function partsOf(members: readonly Judged[]): readonly Part[] {
  const parts: Part[] = []
  for (const tree of new Set(members.map(member => member.tree))) {
    const last = new Map<number, Part>()
    for (const piece of piecesOf(tree, members)) {
      const [first] = piece.through
      const before = last.get(first!)
      if (before && before.through.length === piece.through.length) before.pieces.push(piece.of)
      else {
        const part = { parent: before, through: piece.through, pieces: [piece.of] }
        parts.push(part)
        for (const member of piece.through) last.set(member, part)
      }
    }
  }
  return parts
}

interface Piece {
  readonly of: Part['pieces'][number]
  readonly through: readonly number[]
}

/** The sampled tokens of a tree, cut wherever trajectories diverge; earlier nodes come first. */
function piecesOf(tree: Tree, members: readonly Judged[]): readonly Piece[] {
  const passing = new Map<number, { readonly member: number; readonly length: number }[]>()
  members.forEach((member, index) => {
    if (member.tree !== tree) return
    for (const [node, length] of coverageOf(tree, member.trajectory)) {
      if (tree.nodes[node]!.segment.origin !== 'sampled') continue
      const others = passing.get(node)
      if (others) others.push({ member: index, length })
      else passing.set(node, [{ member: index, length }])
    }
  })
  const nodes = [...passing].sort(([one], [other]) => one - other)
  return nodes.flatMap(([node, list]) => {
    const ends = [...new Set(list.map(({ length }) => length))].sort((a, b) => a - b)
    return ends.map((end, index) => ({
      of: { node, start: ends[index - 1] ?? 0, end },
      through: list.filter(({ length }) => length >= end).map(({ member }) => member),
    }))
  })
}
