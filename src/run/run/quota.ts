import { type Group, glanceAt } from '../../base/core/group.ts'
import { RunStoppedError } from '../watch/stopped.ts'

/** How many groups are wanted, and how many may be rolled for them. */
export interface QuotaOptions {
  /** Groups with something to train on. @default every task's */
  readonly keep?: number
  /** Groups begun for each one that is still wanted. @default 1 */
  readonly overSample?: number
  /** Groups that may be rolled in place of those that filters emptied, per group wanted. @default 2 */
  readonly refill?: number
  /** What the run had kept and begun before it was interrupted. */
  readonly before?: { readonly kept: number; readonly begun: number }
}

/** Counts groups that were kept against those that are wanted. */
export interface Quota {
  /** Groups that may be under way at one time. */
  readonly ahead: number
  /** Counts a group that is begun; returns false if no more refills are allowed. */
  begin(): boolean
  /** The error for a run that may begin no further group. */
  exhausted(): RunStoppedError
  take(group: Group): void
  /** Why the run should end now, if it should. */
  readonly end: RunStoppedError | undefined
  readonly kept: number
  /** Sampled tokens per trajectory of all that was taken. */
  readonly length: number
}

/** Opens the quota of a run. */
export function makeQuota(options: QuotaOptions): Quota {
  const { keep, overSample = 1, refill = 2, before = { kept: 0, begun: 0 } } = options
  let { kept, begun } = before
  let sampled = 0
  let trajectories = 0
  const wanted = keep ?? Number.POSITIVE_INFINITY
  const most = Math.ceil(wanted * Math.max(1 + refill, overSample))
  return {
    get ahead() {
      return Math.max(1, Math.ceil((wanted - kept) * overSample))
    },
    begin() {
      if (begun >= most) return false
      begun++
      return true
    },
    exhausted: () =>
      new RunStoppedError(
        'refill',
        `${begun} groups were rolled for ${wanted} wanted, and filters left ${kept}: --refill ${refill} allows no more`,
      ),
    take(group) {
      if (glanceAt(group).isUseful) kept++
      // Lengths are compared if a run is cut short; otherwise nothing is looked into.
      if (keep === undefined) return
      for (const { trajectory } of group.members) {
        sampled += trajectory.usage.sampled
        trajectories++
      }
    },
    get end() {
      if (kept < wanted) return undefined
      return new RunStoppedError('keep', `${kept} groups are kept, as many as were wanted`)
    },
    get kept() {
      return kept
    },
    get length() {
      return sampled / Math.max(1, trajectories)
    },
  }
}
