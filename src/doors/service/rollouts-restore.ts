import type { Group } from '../../base/core/group.ts'
import { type GroupId, seatGroup } from '../../base/core/ids.ts'
import type { FinishedGroup } from './rollouts-api.ts'
import { type Entry, type GroupPlace, placeOf, type RolloutJob } from './rollouts-entry.ts'
import type { DoneSubmission, LeftSubmission } from './rollouts-record.ts'

/** How the groups of a submission are found again. */
export interface Finding {
  /** A finished group of the run. */
  find(id: GroupId): Promise<Group | undefined>
  /** The group as clients get it. */
  toAnswer(group: Group, job: RolloutJob): Promise<Omit<FinishedGroup, 'cursor'>>
}

/** What is finished of a submission that a service left. */
export interface Restored extends Pick<Entry, 'finished'> {
  /** What its client does not have yet. */
  readonly results: readonly FinishedGroup[]
  /** Groups of the run that are not recorded as finished: the service was killed before it wrote their line. */
  readonly unrecorded: readonly GroupPlace[]
}

/** Finds what is finished of a submission, and takes it from the groups that are awaited. */
export async function restoreFinished(
  { submission, finished: recorded, taken }: LeftSubmission,
  awaited: Map<GroupId, RolloutJob>,
  { find, toAnswer }: Finding,
): Promise<Restored> {
  const results: FinishedGroup[] = []
  const unrecorded: GroupPlace[] = []
  let finished = 0
  const finish = async (id: GroupId, group?: Group): Promise<void> => {
    const job = awaited.get(id)
    awaited.delete(id)
    finished++
    if (group && job) results.push({ cursor: finished, ...(await toAnswer(group, job)) })
  }
  for (const [at, { index, seat = '' }] of recorded.entries()) {
    const id = seatGroup(`${submission.id}/${index}` as GroupId, seat)
    // One that was lost, for instance in a power cut, is rolled again, unless the client has it.
    const group = at < taken ? undefined : await find(id)
    if (group || at < taken) await finish(id, group)
  }
  for (const [id, { index }] of [...awaited]) {
    const group = await find(id)
    if (!group) continue
    unrecorded.push(placeOf({ index, seat: group.seat }))
    await finish(id, group)
  }
  return { finished, results, unrecorded }
}

/** What clients are told of a submission that cannot go on. */
export function asideOf(
  { submission: { id }, digest, groups, finished, taken }: LeftSubmission,
  cause: Error,
): DoneSubmission {
  const reason = `it cannot go on since the service was started again: ${cause.message}`
  const status = { id, state: 'failed', groups, finished: finished.length, taken, reason } as const
  return { digest, status }
}
