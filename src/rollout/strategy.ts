import type { Tree } from '../core/tree.ts'
import type { Attempt, RolloutContext } from './attempt.ts'

/** Rolls one attempt: a chain, a search tree, steps. A failure is in the tree, not thrown. */
export type Strategy = (context: RolloutContext, attempt: Attempt) => Promise<Tree>
