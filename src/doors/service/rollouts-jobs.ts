import type { Task } from '../../base/core/environment.ts'
import { type GroupId, seatGroup } from '../../base/core/ids.ts'
import type { Policy, Sampling } from '../../base/core/policy.ts'
import { seedOf } from '../../base/math/random.ts'
import { learningSeatsOf } from '../../run/run/pipeline.ts'
import { openRollPipeline, type RollParts } from '../../run/run/roll-groups.ts'
import type { Format } from '../../run/sinks/format.ts'
import { formatNamed } from '../../run/sinks/formats/registry.ts'
import { toTask } from '../../run/tasks/tasks.ts'
import { RefusedRequest } from '../door/refused-request.ts'
import type { Submission } from './rollouts-api.ts'
import type { Entry, RolloutJob } from './rollouts-entry.ts'

/** Where tasks of submissions come from. */
export interface TaskSources {
  readonly parts: RollParts
  findTask(id: string): Promise<Task | undefined>
}

export function readFormat(name: string): Format {
  try {
    const format = formatNamed(name)
    if (!format.isWhole) return format
  } catch (error) {
    throw new RefusedRequest(400, (error as Error).message)
  }
  throw new RefusedRequest(400, `${name} is not a format of lines, which answers are made of`)
}

export async function readJobs(
  { id, tasks }: Submission,
  { parts, findTask }: TaskSources,
): Promise<readonly RolloutJob[]> {
  const jobs: RolloutJob[] = []
  for (const [index, entry] of tasks.entries()) {
    const task = await taskOf(entry, { place: `tasks[${index}]`, index, parts, findTask })
    jobs.push({ id: `${id}/${index}` as GroupId, task, index })
  }
  return jobs
}

/** A task by its id, or from its data. */
export async function taskOf(
  entry: Submission['tasks'][number],
  context: TaskSources & {
    readonly place: string
    readonly index: number
  },
): Promise<Task> {
  const { place, index, parts, findTask } = context
  if (typeof entry === 'object') return readTask(entry, { place, index, parts })
  const task = await findTask(String(entry))
  if (!task) throw new RefusedRequest(400, `${place}: no task with id "${entry}"`)
  return task
}

function readTask(
  entry: Readonly<Record<string, unknown>>,
  { place, index, parts }: { place: string; index: number; parts: RollParts },
): Task {
  try {
    return toTask(parts.environment, entry, { number: index, place })
  } catch (cause) {
    throw new RefusedRequest(400, (cause as Error).message)
  }
}

/** Refuses groups that the queue has no room for, now or ever. */
export function checkRoom(
  wanted: number,
  { queued, queue }: { readonly queued: number; readonly queue: number },
): void {
  if (wanted > queue) {
    throw new RefusedRequest(
      400,
      `${wanted} groups are more than the queue of this service ever has room for (${queue}): send them in parts`,
    )
  }
  if (queued + wanted > queue) {
    throw new RefusedRequest(
      429,
      `${queued} of ${queue} groups are queued: there is no room for ${wanted} more`,
    )
  }
}

/** The groups that tasks make: one for every seat that learns. */
export function groupsOf(
  jobs: readonly RolloutJob[],
  parts: Pick<RollParts, 'environment' | 'seats'>,
): Map<GroupId, RolloutJob> {
  const seats = learningSeatsOf(parts)
  return new Map(jobs.flatMap(job => seats.map(seat => [seatGroup(job.id, seat), job] as const)))
}

/** What a submission is rolled with. */
export interface EntryParts extends Pick<Entry, 'digest' | 'format' | 'awaited' | 'endpoint'> {
  readonly parts: RollParts
  readonly policy: Policy
  giveBack(): void
}

export function makeEntry(submission: Submission, given: EntryParts): Entry {
  const { parts, policy, ...rest } = given
  const stop = new AbortController()
  const size = submission.group ?? parts.group ?? 8
  const signal = parts.signal ? AbortSignal.any([parts.signal, stop.signal]) : stop.signal
  const seed = submission.seed ?? seedOf('rollouts', parts.seed ?? 0, submission.id).low >>> 1
  const sampling = { ...parts.sampling, ...defined(submission.sampling ?? {}) }
  return {
    submission,
    ...rest,
    stop,
    size,
    pipeline: openRollPipeline({
      ...parts,
      policy,
      group: size,
      seed,
      sampling,
      signal,
      // Workers elsewhere open the policy themselves, by this URI.
      ...(rest.endpoint !== undefined && { endpoint: rest.endpoint }),
    }),
    pending: [...new Set(rest.awaited.values())],
    finished: 0,
    taken: 0,
    state: 'running',
    results: [],
    waiting: new Set(),
  }
}

/** The fields that have a value, so that none overwrites a setting. */
function defined(values: NonNullable<Submission['sampling']>): Partial<Sampling> {
  return Object.fromEntries(Object.entries(values).filter(([, value]) => value !== undefined))
}
