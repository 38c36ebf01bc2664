import type { Group } from '../src/base/core/group.ts'
import { sampled } from '../src/base/core/segment.ts'
import type { Tree } from '../src/base/core/tree.ts'
import { random, seedOf } from '../src/base/math/random.ts'

/** A group whose policy scored its finished tokens slightly differently than it sampled them, with older versions. */
export function withProximal(group: Group, seed: number): Group {
  const next = random(seedOf(seed, 'proximal'))
  const trees = new Map<Tree, Tree>()
  for (const { tree } of [...group.members, ...group.unscored]) {
    if (!trees.has(tree)) trees.set(tree, scored(tree, next))
  }
  const moved = <Member extends { readonly tree: Tree }>(member: Member): Member => ({
    ...member,
    tree: trees.get(member.tree)!,
  })
  return { ...group, members: group.members.map(moved), unscored: group.unscored.map(moved) }
}

function scored(tree: Tree, next: () => number): Tree {
  const nodes = tree.nodes.map(node => {
    const { segment } = node
    if (segment.origin !== 'sampled') return node
    const version = Math.floor(5 * next())
    const logprobs = segment.logprobs ?? Float32Array.from(segment.ids, () => -next())
    const proximal = logprobs.map(value => Math.min(0, value + 0.6 * (next() - 0.5)))
    const parts = { ids: segment.ids, logprobs, version: { from: version, to: version } }
    return { ...node, segment: sampled({ ...parts, others: { proximal } }) }
  })
  return { ...tree, nodes }
}
