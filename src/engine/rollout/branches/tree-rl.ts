import type { Tree } from '../../../base/core/tree.ts'
import type { BranchPolicy, Grown, Growth } from '../branch.ts'

/** TreeRL's parameters, with its published defaults; trees per task are `--group`. */
export interface TreeRlOptions {
  /** Tokens of a tree that are branched at in one round. @default 2 */
  readonly tokens?: number
  /** Continuations of each of them. @default 2 */
  readonly branches?: number
  /** @default 1 */
  readonly rounds?: number
}

interface Surprise {
  readonly growth: Growth
  readonly surprisal: number
}

/** Branches inside turns, before the tokens that surprised most (Hou et al. 2025, arXiv 2506.11902). */
export function treeRlBranches({
  tokens = 2,
  branches = 2,
  rounds = 1,
}: TreeRlOptions = {}): BranchPolicy {
  return {
    name: 'tree-rl',
    needs: ({ logprobs }) => (logprobs ? undefined : 'log-probabilities'),
    grow({ tree, paths, round }) {
      if (round >= rounds) return []
      const seen = new Set<number>()
      return paths
        .flatMap(path => surprisesIn(tree, path, seen))
        .sort((a, b) => b.surprisal - a.surprisal)
        .slice(0, tokens)
        .flatMap(({ growth }) => new Array<Growth>(branches).fill(growth))
    },
  }
}

/** Every sampled token of a path that no earlier path had, but for the first of each segment. */
function surprisesIn(tree: Tree, from: Grown, seen: Set<number>): readonly Surprise[] {
  const found: Surprise[] = []
  from.ending.turns.forEach((turn, index) => {
    for (let node = turn.end.node; ; node = tree.nodes[node]!.parent.node) {
      const { segment } = tree.nodes[node]!
      if (segment.origin === 'sampled' && segment.logprobs && !seen.has(node)) {
        seen.add(node)
        segment.logprobs.forEach((logprob, offset) => {
          if (offset === 0 || Number.isNaN(logprob)) return
          const growth = { from, turn: index, place: { node, offset } }
          found.push({ growth, surprisal: -logprob })
        })
      }
      if (node === turn.from || node === 0) break
    }
  })
  return found
}
