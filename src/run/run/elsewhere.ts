import type { Call } from '../../base/core/call.ts'
import type { Task } from '../../base/core/environment.ts'
import type { GroupGlance, Scored, Unscored } from '../../base/core/group.ts'
import type { GroupId, TreeId } from '../../base/core/ids.ts'
import type { Sampling } from '../../base/core/policy.ts'
import type { Tree } from '../../base/core/tree.ts'
import type { Limits } from '../../engine/rollout/attempt.ts'
import type { Examples } from '../../engine/rollout/world/examples.ts'
import type { GatherOptions } from '../../engine/weigh/gather.ts'
import type { NotedTree } from '../store/journal-index.ts'
import type { SegmentPlace } from '../store/segments/pointer.ts'
import type { Listen, RunEvent, TreeEnd, TreesEnd } from '../watch/events.ts'
import type { GroupFigures } from '../watch/group-figures.ts'
import type { BudgetLimits, SpentKind } from './budget.ts'

/** One attempt to be made elsewhere. Its result depends only on this and on the run's settings. */
export interface Work {
  readonly group: GroupId
  readonly member: number
  readonly task: Task
  /** The seed of the run, of its step or of its submission. */
  readonly seed: number
  readonly sampling: Sampling
  readonly limits: Limits
  /** What the policy is shown before the task. */
  readonly examples?: Examples
  /** What it may cost, if the run has a budget. */
  readonly allowance?: BudgetLimits
  /** The policy to sample from in place of the run's own. */
  readonly endpoint?: string
  /** Where turns lie that somebody made who is gone, by attempt. */
  readonly begun?: ReadonlyMap<TreeId, readonly SegmentPlace[]>
}

/** A whole group to be made in one place, and weighed there. */
export interface GroupWork extends Omit<Work, 'member'> {
  /** How many attempts it has. */
  readonly members: number
  /** The task's place in the run's order. */
  readonly order: number
  readonly step?: number
}

/** What became of it. */
export type Returned =
  | Made
  /** Every try failed: the worker died or threw each time. */
  | { readonly kind: 'poisoned'; readonly reason: string }
  /** Its allowance did not suffice. */
  | { readonly kind: 'spent'; readonly of: SpentKind }

/** An attempt that was made and scored. */
export interface Made {
  readonly kind: 'made'
  /** One, or that of every seat. */
  readonly trees: readonly Tree[]
  /** The trees as a thread sent them. */
  readonly sent?: Piece
  readonly members: readonly (Scored | Unscored)[]
  /** Its events. */
  readonly events: readonly RunEvent[]
}

/** Trees as another thread sends them, and their group if it is whole: what the journal has of them is encoded. */
export interface Piece extends TreesEnd {
  readonly trees: readonly MadeTree[]
  /** Where their frames lie in `bytes`, and what they cost. */
  readonly notes: readonly NotedTree[]
  /** The frames of the trees one behind another, and of the group behind them. */
  readonly bytes: Buffer
  /** What happened besides their ends and rewards. */
  readonly events: readonly RunEvent[]
  readonly group?: MadeGroup
}

/** A tree of which only the bytes are here: the event of its end. It is read when it is looked into. */
export interface MadeTree extends Required<Omit<TreeEnd, 'isOther'>> {
  /** Its trajectories with their rewards. */
  readonly members: readonly (Scored | Unscored)[]
}

/** A group as it was weighed where it was made. */
export interface MadeGroup {
  /** Its `GroupRecord` as JSON. */
  readonly record: string
  readonly glance: GroupGlance
  readonly figures: GroupFigures
  /** Its line of `events.jsonl`, but for the time. */
  readonly line: string
}

/** What became of a group that one place was to make. */
export type ReturnedGroup =
  /** The last piece, with the group. */
  | { readonly kind: 'made'; readonly piece: Piece }
  | { readonly kind: 'spent'; readonly of: SpentKind }
  /** Nothing of it was begun: its attempts are better made in several places. */
  | { readonly kind: 'spread' }
  /** Whoever made it is gone: what did not come is made attempt by attempt. `tries` says how often it was begun. */
  | { readonly kind: 'broken'; readonly tries: number }

/** How a group is asked for. */
export interface GroupCall extends Call {
  /** Called when its attempts begin. */
  onBegin(): void
  /** Called with every piece but the last; resolves when the journal has it. */
  onPiece(piece: Piece): Promise<void>
}

/** Other places that make attempts; order, journal, groups and budgets stay with the pipeline. */
export interface Elsewhere {
  /** Whether attempts are made there by now; until then they are made here. @default true */
  readonly isOpen?: boolean
  /** Attempts that may be there at one time, waiting ones included. */
  readonly room: number
  /** Whether another process leads this run there; undefined if that is not known. @default not known */
  isLed?(): Promise<boolean | undefined>
  /** Reports the workers there regularly, and whenever `room` has changed. */
  watch(listen: Listen): () => void
  /**
   * Has an attempt made once, even if it is asked for several times; aborting withdraws it. `tries` says how
   * often it was in the hands of somebody who is gone.
   */
  make(work: Work, call: Call & { readonly tries?: number }): Promise<Returned>
  /** Whether whole groups can be made there, and weighed in this way. @default never */
  weighs?(how: GatherOptions): boolean
  /** Has all attempts of a group made in one place; aborting withdraws them. */
  makeGroup?(work: GroupWork, call: GroupCall): Promise<ReturnedGroup>
  /** Called when the journal has the attempt, or all of the group, so that it can be forgotten there. */
  taken(made: TreeId | GroupId): void
  /** Resolves when no sample is under way and none is begun any more. */
  pause(): Promise<void>
  /** Lets sampling go on, under this version of the weights if one is given. */
  resume(version?: number): Promise<void>
}

/** Runs what changes the weights while nothing is sampled elsewhere, and announces the new version. */
export async function changeElsewhere<T extends { readonly version: number }>(
  elsewhere: Elsewhere | undefined,
  work: () => Promise<T>,
): Promise<T> {
  if (!elsewhere) return await work()
  await elsewhere.pause()
  const changed = await work()
  await elsewhere.resume(changed.version)
  return changed
}
