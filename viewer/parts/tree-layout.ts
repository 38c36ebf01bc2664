import type { TreeAnswer, TreeNodeAnswer } from '../../src/doors/view/trajectory-shapes.ts'

/** Where a segment is drawn: along its path from left to right, in the lane of its first ending. */
export interface Placed {
  readonly node: TreeNodeAnswer
  /** Columns: how many segments lie before it. */
  readonly x: number
  readonly lane: number
}

/** A drawn tree. */
export interface TreeLayout {
  readonly placed: ReadonlyMap<number, Placed>
  readonly columns: number
  readonly lanes: number
}

/**
 * Places a tree's segments. Every ending has a lane; a segment lies in the middle of the lanes of the
 * endings it leads to, so that branches spread evenly from where they part. Paths that were rewritten
 * have lanes of their own below.
 */
export function layoutTree(tree: TreeAnswer): TreeLayout {
  const nodes = new Map(tree.nodes.map(node => [node.node, node]))
  const children = new Map<number, TreeNodeAnswer[]>()
  for (const node of tree.nodes) {
    const parent = node.parent[0]
    children.set(parent, [...(children.get(parent) ?? []), node])
  }
  const depth = new Map<number, number>([[0, -1]])
  // A parent always has a smaller number than its children.
  for (const node of tree.nodes) depth.set(node.node, (depth.get(node.parent[0]) ?? -1) + 1)
  let lanes = 0
  const lane = new Map<number, number>()
  const visit = (number: number): number => {
    const below = children.get(number) ?? []
    const endsHere = tree.endings.some(({ end }) => end[0] === number)
    const places = below.map(child => visit(child.node))
    if (below.length === 0 || (endsHere && places.length === 0)) places.push(lanes++)
    const place = places.length === 0 ? 0 : (Math.min(...places) + Math.max(...places)) / 2
    lane.set(number, place)
    return place
  }
  visit(0)
  const placed = new Map(
    [...nodes].map(([number, node]) => [
      number,
      { node, x: depth.get(number)!, lane: lane.get(number)! },
    ]),
  )
  return { placed, columns: Math.max(0, ...depth.values()) + 1, lanes: Math.max(1, lanes) }
}

/** The number of an ending in its tree. */
export function endingNumber({ id }: TreeAnswer['endings'][number]): string {
  return id.split('/').at(-1)!
}

/** The endings from the uppermost lane to the lowest, each with its index. */
export function endingsInOrder({ endings }: TreeAnswer, { placed }: TreeLayout) {
  const laneOf = (index: number): number =>
    placed.get(endings[index]!.end[0])?.lane ?? endings.length
  return endings
    .map((each, index) => ({ each, index }))
    .sort((one, other) => laneOf(one.index) - laneOf(other.index))
}
