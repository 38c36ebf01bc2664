import type { NonEmpty } from '../../base/core/ids.ts'
import type { Tree } from '../../base/core/tree.ts'
import type { Attempt, RolloutContext } from './attempt.ts'

/** Rolls one attempt: a chain, a search tree, steps; or the tree of every seat. A failure is in the tree, not thrown. */
export type Strategy = (context: RolloutContext, attempt: Attempt) => Promise<Tree | NonEmpty<Tree>>
