import { type Place, pathEnds, pathTo, type Tree } from '../../base/core/tree.ts'

/**
 * The share of each ending in its tree: the product of 1/width over the branchings on its path,
 * where the width of a branching is the number of ways the endings go on from one token. An original
 * and two forks at the same token are three ways, wherever in a turn that token is.
 */
export function sharesOf(tree: Tree, ends: readonly Place[]): readonly number[] {
  const shares = new Array<number>(ends.length).fill(0)
  const routes = ends.map((end, index) => ({ index, steps: stepsTo(tree, end) }))
  const ways = waysOn(routes, 0)
  divide(ways, { each: 1 / ways.length, depth: 0 }, shares)
  return shares
}

/** A node of a route, and how far the route goes into it. */
interface Step {
  readonly node: number
  readonly length: number
}

/** The route to an ending, including the paths that its context was rewritten from. */
interface Route {
  readonly index: number
  readonly steps: readonly Step[]
}

function stepsTo(tree: Tree, end: Place): readonly Step[] {
  return pathEnds(tree, end).flatMap(place =>
    pathTo(tree, place).map(({ node, length }) => ({ node, length })),
  )
}

/** Gives each way its share, and divides it further among several routes. */
function divide(
  ways: readonly (readonly Route[])[],
  { each, depth }: { readonly each: number; readonly depth: number },
  shares: number[],
): void {
  for (const way of ways) {
    if (way.length === 1) shares[way[0]!.index] = each
    else divideAlong(way, { share: each, depth }, shares)
  }
}

/** Follows routes that are in one node together until some of them leave it. */
function divideAlong(
  routes: readonly Route[],
  { share, depth }: { readonly share: number; readonly depth: number },
  shares: number[],
): void {
  const first = Math.min(...routes.map(({ steps }) => steps[depth]!.length))
  const leaving = routes.filter(({ steps }) => steps[depth]!.length === first)
  const staying = routes.filter(({ steps }) => steps[depth]!.length > first)
  const out = waysOn(leaving, depth + 1)
  const width = out.length + (staying.length > 0 ? 1 : 0)
  const each = share / width
  divide(out, { each, depth: depth + 1 }, shares)
  if (staying.length > 0) divide([staying], { each, depth }, shares)
}

/** Routes by the node they go on in; one that ends here is a way of its own. */
function waysOn(routes: readonly Route[], depth: number): readonly (readonly Route[])[] {
  const ways = new Map<string, Route[]>()
  for (const route of routes) {
    const step = route.steps[depth]
    const key = step === undefined ? `end ${route.index}` : `${step.node}`
    ways.set(key, [...(ways.get(key) ?? []), route])
  }
  return [...ways.values()]
}
