import type { Trajectory } from '../core/trajectory.ts'
import type { Tree } from '../core/tree.ts'
import { costOfTree, type TreeCost } from './journal-index.ts'
import { treeFromBytes, treeToBytes } from './tree-frame.ts'

/** What of a trajectory is known before its tree is read. */
type Known = Omit<Trajectory, 'turns' | 'messages' | 'calls' | 'events'>

/** A tree as a thread gives it to another: the bytes that the journal has of it, and what is asked first. */
export interface SentTree {
  readonly bytes: Uint8Array
  readonly known: Pick<Tree, 'task' | 'member' | 'seed'> & { readonly seat: string | undefined }
  readonly trajectories: readonly Known[]
  readonly cost: TreeCost
}

/** Makes a tree ready to be sent. */
export function toSentTree(tree: Tree): SentTree {
  const { task, member, seed, seat } = tree
  return {
    bytes: treeToBytes(tree),
    known: { task, member, seed, seat },
    trajectories: tree.trajectories.map(
      ({ turns: _turns, messages: _messages, calls: _calls, events: _events, ...known }) => known,
    ),
    cost: costOfTree(tree),
  }
}

/**
 * A tree whose bytes are read when something is asked that they alone tell: most trees are written to
 * a journal, compared by their rewards, and never looked into where they are gathered.
 */
export function laterTree({ bytes, known, trajectories, cost }: SentTree): Tree {
  let whole: Tree | undefined
  const read = (): Tree => {
    whole ??= treeFromBytes(Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength))
    return whole
  }
  const { seat, ...rest } = known
  return {
    id: cost.id,
    ...rest,
    ...(seat !== undefined && { seat }),
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

function laterTrajectory(known: Known, read: () => Trajectory): Trajectory {
  return {
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
}
