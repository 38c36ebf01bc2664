/** A node of a search tree: a stretch of sampled tokens. Parents come before their children. */
export interface TreeNode {
  /** The place of its parent in the list; the root has none. */
  readonly parent: number | undefined
  /** Of a leaf; `undefined` there means never scored. */
  readonly reward?: number | undefined
  /** Of a leaf. @default 1 */
  readonly weight?: number
}

/** What a node knows of the leaves below it. */
interface Below {
  weight: number
  total: number
  leaves: number
}

/**
 * TreeRL: the process reward of a node, ((V(s) − V(root)) + (V(s) − V(parent))) / √|L(s)|, with V the
 * weighted mean reward of the scored leaves below (Hou et al. 2025, arXiv 2506.11902). The tokens
 * of a node share it. A node without a scored leaf below has none; a root has 0.
 */
export function treeRlAdvantages(nodes: readonly TreeNode[]): (number | undefined)[] {
  const below = leavesBelow(nodes)
  const roots = new Int32Array(nodes.length)
  const value = (place: number) => below[place]!.total / below[place]!.weight
  return nodes.map(({ parent }, place) => {
    roots[place] = parent === undefined ? place : roots[parent]!
    if (below[place]!.leaves === 0) return undefined
    if (parent === undefined) return 0
    const own = value(place)
    return (own - value(roots[place]!) + (own - value(parent))) / Math.sqrt(below[place]!.leaves)
  })
}

function leavesBelow(nodes: readonly TreeNode[]): Below[] {
  const inner = new Uint8Array(nodes.length)
  nodes.forEach(({ parent }, place) => {
    if (parent === undefined) return
    if (!(Number.isInteger(parent) && parent >= 0 && parent < place)) {
      throw new RangeError(
        `Node ${place} has parent ${parent}; parents come before their children.`,
      )
    }
    inner[parent] = 1
  })
  const below = nodes.map((node, place) => (inner[place] === 1 ? none() : leaf(node, place)))
  for (let place = nodes.length - 1; place >= 0; place--) {
    const { parent } = nodes[place]!
    if (parent === undefined) continue
    below[parent]!.weight += below[place]!.weight
    below[parent]!.total += below[place]!.total
    below[parent]!.leaves += below[place]!.leaves
  }
  nodes.forEach(({ reward }, place) => {
    if (inner[place] === 0 || reward === undefined) return
    throw new RangeError(
      `Node ${place} has children and the reward ${reward}; only leaves are scored.`,
    )
  })
  return below
}

function none(): Below {
  return { weight: 0, total: 0, leaves: 0 }
}

function leaf({ reward, weight = 1 }: TreeNode, place: number): Below {
  if (reward === undefined) return none()
  if (!Number.isFinite(reward) || !(weight > 0)) {
    throw new RangeError(`Leaf ${place} has reward ${reward} and weight ${weight}.`)
  }
  return { weight, total: weight * reward, leaves: 1 }
}
