import { onAbort } from '../../base/core/call.ts'
import type { Task } from '../../base/core/environment.ts'
import type { GroupId } from '../../base/core/ids.ts'
import type { Pipeline } from '../../run/run/pipeline.ts'
import type { Format } from '../../run/sinks/format.ts'
import { RefusedRequest } from '../door/refused-request.ts'
import type { FinishedGroup, Submission, SubmissionStatus } from './rollouts-api.ts'

/** A task of a submission. */
export interface RolloutJob {
  readonly id: GroupId
  readonly task: Task
  /** Its place in the submission. */
  readonly index: number
}

/** A group of a submission: that of a task, or of one seat of it. */
export interface GroupPlace {
  /** The place of its task in the submission. */
  readonly index: number
  readonly seat?: string | undefined
}

/** The place alone of what has one. */
export function placeOf({ index, seat }: GroupPlace): GroupPlace {
  return { index, ...(seat !== undefined && { seat }) }
}

/** A submission while it is worked on, and after it. */
export interface Entry {
  readonly submission: Submission
  /** A digest, to see whether a second submission of this name is the same. */
  readonly digest: string
  readonly format: Format
  readonly stop: AbortController
  readonly pipeline: Pipeline
  /** The tasks of groups that are not finished. */
  readonly awaited: Map<GroupId, RolloutJob>
  /** Those that wait to be rolled. */
  readonly pending: RolloutJob[]
  /** The policy it samples from, if that is not the service's own. */
  readonly endpoint?: string
  /** Lets its policy be closed when nobody else uses it. */
  giveBack(): void
  /** Attempts per task. */
  readonly size: number
  finished: number
  taken: number
  state: SubmissionStatus['state']
  reason?: string
  readonly results: FinishedGroup[]
  /** Callbacks of requests that wait for a result. */
  readonly waiting: Set<() => void>
}

/** How groups are taken. */
export interface TakeOptions {
  /** Gives groups after this cursor. @default 0 */
  readonly after?: number
  /** Whether groups up to `after` are forgotten. @default true */
  readonly acknowledges?: boolean
  /** Seconds to wait if there is none. @default 0 */
  readonly wait?: number
  /** @default 64 */
  readonly max?: number
  readonly signal?: AbortSignal
}

/** What was taken. */
export interface Taken {
  readonly groups: readonly FinishedGroup[]
  readonly cursor: number
  readonly state: SubmissionStatus['state']
}

/** The status of a submission in the API. */
export function statusOf(entry: Entry): SubmissionStatus {
  const { submission, state, awaited, finished, taken, reason } = entry
  return {
    id: submission.id,
    state,
    groups: finished + awaited.size,
    finished,
    taken,
    ...(reason !== undefined && { reason }),
  }
}

/** Refuses a cursor that no group of the submission can have, such as one of another submission. */
export function checkCursor(entry: Entry, cursor: number): void {
  const { id, groups } = statusOf(entry)
  if (cursor <= groups) return
  throw new RefusedRequest(400, `"${id}" has ${groups} groups, and none with the cursor ${cursor}`)
}

/** Forgets the groups that the client has; returns how many. */
export function acknowledge(entry: Entry, after: number): number {
  const gone = entry.results.filter(({ cursor }) => cursor <= after).length
  entry.results.splice(0, gone)
  entry.taken = Math.max(entry.taken, Math.min(after, entry.finished))
  return gone
}

/** Wakes every waiting request. */
export function wake({ waiting }: Entry): void {
  for (const tell of waiting) tell()
  waiting.clear()
}

/** Waits for a result, for the end of the submission, or for as long as the client will. */
export async function waitForResult(
  { waiting }: Entry,
  { wait = 0, signal }: TakeOptions,
): Promise<void> {
  if (wait <= 0 || signal?.aborted) return
  await new Promise<void>(resolve => {
    const done = (): void => {
      clearTimeout(timer)
      release?.()
      waiting.delete(done)
      resolve()
    }
    const timer = setTimeout(done, wait * 1000)
    const release = signal && onAbort(signal, done)
    waiting.add(done)
  })
}
