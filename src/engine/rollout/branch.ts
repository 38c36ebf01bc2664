import type { PolicyCapabilities } from '../../base/core/policy.ts'
import type { SampledSegment } from '../../base/core/segment.ts'
import type { CallRecord } from '../../base/core/tool.ts'
import type { Place, Tree } from '../../base/core/tree.ts'
import type { Ending } from './end-walk.ts'

/** A path that is about to sample a turn, or has just sampled it. */
export interface BranchPoint {
  readonly branch: string
  /** The number of the turn, from 0. */
  readonly turn: number
  /** What the last turn called; empty before the first. */
  readonly calls: readonly CallRecord[]
  /** The segments of each sampled turn so far. */
  readonly turns: readonly (readonly SampledSegment[])[]
  /** Draws for this point alone: numbers in [0, 1). */
  readonly random: () => number
}

/** A finished path of a tree, with its name. */
export interface Grown {
  readonly branch: string
  readonly ending: Ending
}

/** Where a finished tree grows on: before a turn of one of its paths, or inside that turn. */
export interface Growth {
  readonly from: Grown
  readonly turn: number
  /** Inside the turn: the place that the new path goes on from. */
  readonly place?: Place
}

/** A tree whose paths have all ended, for deciding where it grows on. */
export interface GrownTree {
  readonly tree: Tree
  readonly paths: readonly Grown[]
  /** How many times it was asked before. */
  readonly round: number
  readonly random: () => number
  /** What an ended path is worth; `undefined` if it cannot be scored. */
  score(path: Grown): Promise<number | undefined>
}

/** Decides where a search tree branches. */
export interface BranchPolicy {
  readonly name: string
  /** What the policy must be able to do, in the words of its capabilities. */
  readonly needs?: (capabilities: PolicyCapabilities) => string | undefined
  /** Candidates per token that samples should report. @default 0 */
  readonly topLogprobs?: number
  /** How many paths start from the opening. @default 1 */
  readonly starts?: number
  /** Continuations of a turn before it is sampled. @default 1 */
  widthBefore?(point: BranchPoint): number
  /** Continuations of a turn after its first one was sampled, that one included. @default 1 */
  widthAfter?(point: BranchPoint): number
  /** Where to grow on when every path has ended; an empty list ends the tree. */
  grow?(grown: GrownTree): readonly Growth[] | Promise<readonly Growth[]>
}
