import { expertsKnown } from '../src/base/core/experts.ts'
import { sampled } from '../src/base/core/segment.ts'
import { idsTo, pathTo, plantTree, type Tree } from '../src/base/core/tree.ts'

/** The shape of the mixture that tests sample from. */
export const [layers, top] = [3, 2]

/** What a model routes a token to: a function of all tokens up to it. */
export function routed(ids: Int32Array, experts: number): readonly number[] {
  const digest = ids.reduce((sum, id) => (sum * 31 + id + 7) % 65_521, 1)
  return Array.from({ length: layers * top }, (_, at) => (digest * (at + 3)) % experts)
}

/** The tree as it would have grown with a server that reports experts for all tokens not reported before. */
export function withExperts(tree: Tree, experts: number): Tree {
  const grown = plantTree(tree)
  for (const { parent, segment, lineage } of tree.nodes.slice(1)) {
    if (segment.origin !== 'sampled' || segment.ids.length === 0) {
      grown.append(parent, segment, lineage)
      continue
    }
    const before = idsTo(grown, parent)
    const known = expertsKnown(grown, pathTo(grown, parent))
    const all = Int32Array.from([...before, ...segment.ids])
    const numbers: number[] = []
    for (let token = known; token < all.length - 1; token++) {
      numbers.push(...routed(all.subarray(0, token + 1), experts))
    }
    const data = experts > 256 ? Uint16Array.from(numbers) : Uint8Array.from(numbers)
    const own = { layers, top, before: before.length - known, data }
    grown.append(parent, sampled({ ...segment, experts: own }), lineage)
  }
  for (const trajectory of tree.trajectories) grown.end(trajectory)
  return grown
}
