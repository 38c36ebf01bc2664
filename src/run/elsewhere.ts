import type { Call } from '../core/call.ts'
import type { Task } from '../core/environment.ts'
import type { Scored, Unscored } from '../core/group.ts'
import type { GroupId, TreeId } from '../core/ids.ts'
import type { Sampling } from '../core/policy.ts'
import type { Tree } from '../core/tree.ts'
import type { Limits } from '../rollout/attempt.ts'
import type { SentTree } from '../store/later-tree.ts'
import type { Listen, RunEvent } from '../watch/events.ts'
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
  /** What it may cost, where the run has a budget. */
  readonly allowance?: BudgetLimits
  /** The policy to sample from in place of the run's own. */
  readonly endpoint?: string
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
  /** The same as bytes from a thread; the trees themselves are then decoded only when read. */
  readonly sent?: readonly SentTree[]
  /** The lines of `events.jsonl` of their ends, if they were sent. */
  readonly lines?: readonly string[]
  readonly members: readonly (Scored | Unscored)[]
  /** Its events. */
  readonly events: readonly RunEvent[]
}

/** Other places that make attempts; order, journal, groups and budgets stay with the pipeline. */
export interface Elsewhere {
  /** Whether attempts are made there by now; until then they are made here. @default true */
  readonly isOpen?: boolean
  /** Attempts that may be there at one time, waiting ones included. */
  readonly room: number
  /** Reports the workers there regularly, and whenever `room` has changed. */
  watch(listen: Listen): () => void
  /** Has an attempt made once, even if it is asked for several times; aborting withdraws it. */
  make(work: Work, call: Call): Promise<Returned>
  /** Called when the journal has the attempt, so that it can be forgotten there. */
  taken(attempt: TreeId): void
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
