import type { Trajectory } from '../../base/core/trajectory.ts'
import type { Tree } from '../../base/core/tree.ts'
import { costOfTree, type TreeCost } from './journal-index.ts'
import { treeFromBytes } from './tree-frame.ts'

/** What of a trajectory is only read with its tree. */
type Long = 'turns' | 'messages' | 'views' | 'calls' | 'events'

/** The fields of a trajectory that are known before its tree is decoded. */
type Known = Omit<Trajectory, Long> & { readonly hasViews: boolean }

/** What of a tree is asked first, as plain JSON; the rest is read from the bytes that the journal has of it. */
export interface LaterTree {
  readonly known: Pick<Tree, 'task' | 'member' | 'seed'> & { readonly seat?: string }
  readonly trajectories: readonly Known[]
  readonly cost: TreeCost
}

/** What is sent of a tree besides its bytes. */
export function treeAsSent(tree: Tree): LaterTree {
  const { task, member, seed, seat } = tree
  return {
    known: { task, member, seed, ...(seat !== undefined && { seat }) },
    trajectories: tree.trajectories.map(knownOf),
    cost: costOfTree(tree),
  }
}

function knownOf(trajectory: Trajectory): Known {
  const { turns: _turns, messages: _messages, views, calls: _calls, ...more } = trajectory
  const { events: _events, ...known } = more
  return { ...known, hasViews: views !== undefined }
}

/**
 * A tree whose bytes are decoded only when needed: most trees are written to the journal, compared by
 * their rewards, and never read by the gathering thread.
 */
export function laterTree({ known, trajectories, cost }: LaterTree, bytes: () => Buffer): Tree {
  let whole: Tree | undefined
  const read = (): Tree => {
    whole ??= treeFromBytes(bytes())
    return whole
  }
  return {
    id: cost.id,
    ...known,
    get sampling() {
      return read().sampling
    },
    get tools() {
      return read().tools
    },
    get renderer() {
      return read().renderer
    },
    get nodes() {
      return read().nodes
    },
    trajectories: trajectories.map((trajectory, index) =>
      laterTrajectory(trajectory, () => read().trajectories[index]!),
    ),
  }
}

function laterTrajectory({ hasViews, ...known }: Known, read: () => Trajectory): Trajectory {
  const later: Trajectory = {
    ...known,
    get turns() {
      return read().turns
    },
    get messages() {
      return read().messages
    },
    get calls() {
      return read().calls
    },
    get events() {
      return read().events
    },
  }
  // If nothing was condensed the name is not there at all.
  if (!hasViews) return later
  return Object.defineProperty(later, 'views', { get: () => read().views, enumerable: true })
}
