import type { GroupId } from '../../../base/core/ids.ts'
import type { SegmentPlace } from '../../store/segments/pointer.ts'
import type { ServerBack, Warned } from '../../watch/events.ts'
import type { StopKind } from '../../watch/stopped.ts'
import type { SpentKind } from '../budget.ts'
import type { GroupWork, Work } from '../elsewhere.ts'
import type { RollOptions } from '../roll-options.ts'
import type { ServingOptions, TurnsKept } from '../served/served-run.ts'
import type { MadeBatch } from './made-batch.ts'

/** What a thread opens a run with. */
export interface ThreadStart extends Pick<ServingOptions, 'onUpdate' | 'concurrency'> {
  readonly environment: string
  /** Every part of the run by its name. */
  readonly options: RollOptions
  readonly tellsSamples: boolean
  /** Whether servers that are away are waited for without end. @default as long as the run says */
  readonly waitsForever?: boolean
  /** Where the images of the run are kept; undefined: in this thread alone. */
  readonly imageFolder: string | undefined
  /** Where turns of unfinished attempts are kept. @default nowhere */
  readonly turns?: Omit<TurnsKept, 'onKept'> | undefined
  /** The secrets known to the main thread, which must never be written. */
  readonly secrets: readonly string[]
}

/** Weights that were announced. */
export interface WeightsOrder {
  readonly version: number | null
  /** The weights themselves if the policy runs inside, in memory that all threads see. */
  readonly weights: Uint8Array | null
}

/** What the groups of a run mostly have in common. */
export type SharedWork = Pick<GroupWork, 'seed' | 'sampling' | 'limits' | 'endpoint' | 'examples'>
/** What every group has of its own. */
export type OwnWork = Omit<GroupWork, keyof SharedWork>

/** Messages to a thread. */
export type ToThread =
  | { readonly kind: 'make'; readonly id: number; readonly making: string; readonly work: Work }
  | {
      readonly kind: 'make-group'
      readonly id: number
      readonly making: string
      readonly work: OwnWork
      /** Left out if it is the same as for the group before. */
      readonly shared?: SharedWork
    }
  | { readonly kind: 'withdraw'; readonly id: number }
  | { readonly kind: 'pause'; readonly id: number }
  | ({ readonly kind: 'resume'; readonly id: number } & WeightsOrder)
  | { readonly kind: 'close'; readonly id: number }

/** Messages from a thread; `id` is that of the order. */
export type FromThread =
  | { readonly kind: 'ready' }
  /** It cannot open the run. */
  | { readonly kind: 'refused'; readonly reason: string }
  | MadeBatch
  | { readonly kind: 'spent'; readonly id: number; readonly of: SpentKind }
  | { readonly kind: 'failed'; readonly id: number; readonly reason: string }
  /** The order is done: it has paused, has the weights, or is closed. */
  | { readonly kind: 'done'; readonly id: number }
  | { readonly kind: 'line'; readonly line: string }
  /** Turns of unfinished attempts lie in these places. */
  | { readonly kind: 'turns'; readonly places: readonly SegmentPlace[] }
  /** A server of it is away, or back. */
  | { readonly kind: 'signal'; readonly event: Warned | ServerBack }
  /** It cannot go on for want of a server. */
  | { readonly kind: 'halted'; readonly of: StopKind; readonly message: string }

/** The name of one try of an attempt. */
export function makingOf(group: GroupId, member: number, tries: number): string {
  return `${group}/${member} ${tries}`
}
