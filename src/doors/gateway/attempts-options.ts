import type { Environment } from '../../base/core/environment.ts'
import type { Filter, Group } from '../../base/core/group.ts'
import type { GroupId } from '../../base/core/ids.ts'
import type { LeafWeighting } from '../../base/math/credit.ts'
import type { CaptureContext } from '../../engine/capture/contract.ts'
import type { Attempt } from '../../engine/rollout/attempt.ts'
import type { Estimate } from '../../engine/weigh/estimate.ts'
import type { DiskWatch } from '../../run/store/disk-watch.ts'
import type { RunWriter } from '../../run/store/store.ts'
import type { Listen } from '../../run/watch/events.ts'
import type { AttemptRecord } from './attempt-record.ts'

/** What a gateway captures attempts with, and where it puts them. */
export interface AttemptsOptions {
  readonly context: CaptureContext
  /** The context of one attempt, with what is put around it. @default the context of all */
  readonly contextFor?: (attempt: Attempt) => CaptureContext
  /** Scores attempts whose agents post no reward. */
  readonly reward: Environment['reward']
  readonly filters: readonly Filter[]
  readonly estimate: Estimate
  readonly weighting: LeafWeighting
  /** Attempts per group. */
  readonly group: number
  readonly seed: number
  readonly signal: AbortSignal
  readonly writer?: RunWriter
  readonly listen?: Listen
  readonly onGroup?: (group: Group) => void
  /** Attempts that may be open at one time. @default 4096 */
  readonly most?: number
  /** Seconds without a request after which an attempt is closed. @default 600 */
  readonly idleSeconds?: number
  /** Groups that an earlier gateway wrote into the same run. */
  readonly finished?: ReadonlySet<GroupId>
  /** What the run keeps of attempts besides their trees, those of earlier gateways too. @default nothing */
  readonly record?: AttemptRecord
  /** The disk that they are kept on: while it is full, nothing is taken on. @default none */
  readonly disk?: DiskWatch
}
