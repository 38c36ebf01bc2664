import { pick } from '../../../base/math/random.ts'
import type { BranchPolicy, Growth } from '../branch.ts'

/** Tree-GRPO's parameters, with the defaults of its published code; trees per task are `--group`. */
export interface TreeGrpoOptions {
  /** Places that are expanded in one round. @default 2 */
  readonly expansions?: number
  /** @default 1 */
  readonly rounds?: number
}

/**
 * Expands turns of a finished tree, drawn uniformly with replacement from the opening and all turns
 * that are not the last of their path (Ji et al. 2025, arXiv 2509.21240).
 */
export function treeGrpoBranches({
  expansions = 2,
  rounds = 1,
}: TreeGrpoOptions = {}): BranchPolicy {
  return {
    name: 'tree-grpo',
    grow({ tree, paths, round, random }) {
      if (round >= rounds) return []
      const known = new Map<number, Growth>()
      for (const from of paths) {
        from.ending.turns.forEach(({ from: node }, turn) => {
          const start = tree.nodes[node]!.parent.node
          if (!known.has(start)) known.set(start, { from, turn })
        })
      }
      const places = [...known.values()]
      if (places.length === 0) return []
      return Array.from({ length: expansions }, () => pick(places, random))
    },
  }
}
