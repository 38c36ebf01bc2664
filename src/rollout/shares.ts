import { type Place, pathEnds, pathTo, type Tree } from '../core/tree.ts'

/**
 * The share of each ending in its tree: the product of 1/width over the branchings on its path,
 * where the width of a branching is the number of ways the endings go on from it.
 */
export function sharesOf(tree: Tree, ends: readonly Place[]): readonly number[] {
  const paths = ends.map(end => pathKeys(tree, end))
  return sharesBelow(paths, 0)
}

/** A path as keys that two paths share exactly as long as they share their tokens. */
function pathKeys(tree: Tree, end: Place): readonly string[] {
  return pathEnds(tree, end).flatMap(place =>
    pathTo(tree, place).map(({ node, length }) => {
      const isWhole = tree.nodes[node]!.segment.ids.length === length
      return isWhole ? `${node}` : `${node}:${length}`
    }),
  )
}

function sharesBelow(paths: readonly (readonly string[])[], depth: number): number[] {
  if (paths.length === 1) return [1]
  const groups = new Map<string, number[]>()
  paths.forEach((path, index) => {
    const key = keyAt(path, depth, index)
    groups.set(key, [...(groups.get(key) ?? []), index])
  })
  const shares = new Array<number>(paths.length).fill(0)
  for (const members of groups.values()) {
    const below = sharesBelow(
      members.map(index => paths[index]!),
      depth + 1,
    )
    members.forEach((index, place) => {
      shares[index] = below[place]! / groups.size
    })
  }
  return shares
}

/** Paths that end here go their own way; a fork inside a node leaves it as others go through it. */
function keyAt(path: readonly string[], depth: number, index: number): string {
  const key = path[depth]
  return key === undefined ? `end ${index}` : key
}
