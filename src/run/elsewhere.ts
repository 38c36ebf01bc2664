import type { Call } from '../core/call.ts'
import type { Task } from '../core/environment.ts'
import type { Scored, Unscored } from '../core/group.ts'
import type { GroupId, TreeId } from '../core/ids.ts'
import type { Sampling } from '../core/policy.ts'
import type { Tree } from '../core/tree.ts'
import type { Limits } from '../rollout/attempt.ts'
import type { SentTree } from '../store/later-tree.ts'
import type { CountedTree, Listen, RunEvent } from '../watch/events.ts'
import type { BudgetLimits, SpentKind } from './budget.ts'

/** One attempt that is to be made elsewhere. What it gives is a function of this and of the run's settings. */
export interface Work {
  readonly group: GroupId
  readonly member: number
  readonly task: Task
  /** The seed of the run, of its step or of its submission. */
  readonly seed: number
  readonly sampling: Sampling
  readonly limits: Limits
  /** What it may cost, where the run has a budget. */
  readonly allowance?: BudgetLimits
  /** The policy to sample from in place of the run's own. */
  readonly endpoint?: string
}

/** What became of it. */
export type Returned =
  | Made
  /** Nobody could make it: whoever tried died, or broke, as often as is tried. */
  | { readonly kind: 'poisoned'; readonly reason: string }
  /** Its allowance did not suffice. */
  | { readonly kind: 'spent'; readonly of: SpentKind }

/** An attempt that was made and scored. */
export interface Made {
  readonly kind: 'made'
  /** One, or that of every seat. */
  readonly trees: readonly Tree[]
  /** The same as they were sent by a thread, in which case the trees themselves are read when looked into. */
  readonly sent?: readonly SentTree[]
  /** The same in numbers, where whoever made them has counted. */
  readonly counted?: readonly CountedTree[]
  readonly members: readonly (Scored | Unscored)[]
  /** What there was to tell of it. */
  readonly events: readonly RunEvent[]
}

/** Other places that make attempts; order, journal, groups and budgets stay with the pipeline. */
export interface Elsewhere {
  /** Whether attempts are made there by now; until then they are made here. @default true */
  readonly isOpen?: boolean
  /** Attempts that may be there at one time, waiting ones included. */
  readonly room: number
  /** Tells who works there, now and then, and whenever `room` has changed. */
  watch(listen: Listen): () => void
  /** Has an attempt made, once, however often it is asked for; aborting withdraws it. */
  make(work: Work, call: Call): Promise<Returned>
  /** The journal has it: it may be forgotten there. */
  taken(attempt: TreeId): void
  /** No sample is begun any more, and none is under way, when this resolves. */
  pause(): Promise<void>
  /** Samples go on, under this version of the weights where one is named. */
  resume(version?: number): Promise<void>
}

/** Runs what changes the weights while nothing is sampled elsewhere, and says which version they are. */
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
