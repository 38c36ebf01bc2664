import type { Task } from '../../base/core/environment.ts'
import type { Group } from '../../base/core/group.ts'
import type { GroupId } from '../../base/core/ids.ts'
import type { Policy } from '../../base/core/policy.ts'
import type { RollParts } from '../../run/run/roll-groups.ts'
import type { DiskWatch } from '../../run/store/disk-watch.ts'
import type { WeighFor } from './rollouts-answer.ts'
import type { RolloutsRecord } from './rollouts-record.ts'

/** What a service works with, and how much it takes on. */
export interface RolloutsOptions {
  readonly parts: RollParts
  /** Opens the endpoint that a submission names. */
  openPolicy(uri: string): Promise<Policy>
  /** Finds a task of the service by its id. */
  findTask(id: string): Promise<Task | undefined>
  /** Groups that may wait to be rolled. @default 4096 */
  readonly queue?: number
  /** Finished groups that may wait to be taken; rolling stops until there is room. @default 256 */
  readonly results?: number
  /** Seconds after which an endpoint of clients that nobody samples from is closed. @default 600 */
  readonly idleSeconds?: number
  /** Where submissions are kept, so that a service that is killed goes on where it was. */
  readonly record?: RolloutsRecord
  /** The disk that it is kept on: while it is full, nothing is taken on or begun. @default none */
  readonly disk?: DiskWatch
  /** Weighs a group for the trainer of a format: importance weights, shaped rewards. */
  readonly weigh?: WeighFor
  /** Tells the operator a line: why attempts fail. */
  tell?(line: string): void
  /** Finds a finished group of the resumed run. */
  findGroup?(id: GroupId): Promise<Group | undefined>
}
