import { createHash } from 'node:crypto'
import type { Task } from '../core/environment.ts'
import { describeCause } from '../core/failure.ts'
import type { Group } from '../core/group.ts'
import type { GroupId, TaskId } from '../core/ids.ts'
import type { Policy, Sampling } from '../core/policy.ts'
import { seedOf } from '../math/random.ts'
import { openRollPipeline, type RollParts, rolloutsOf } from '../run/roll-groups.ts'
import type { Format } from '../sinks/format.ts'
import { formatNamed } from '../sinks/formats/registry.ts'
import { groupToAnswer } from './rollouts-answer.ts'
import type { FinishedGroup, Submission, SubmissionStatus } from './rollouts-api.ts'
import {
  acknowledge,
  type Entry,
  type RolloutJob,
  statusOf,
  type TakeOptions,
  waitForResult,
  wake,
} from './rollouts-entry.ts'
import { openWeightsDesk, type WeightsDesk } from './rollouts-policy.ts'

/** A request that cannot be done, with the code of its answer. */
export class RolloutsError extends Error {
  override name = 'RolloutsError'
  readonly code: 400 | 404 | 409 | 429

  constructor(code: RolloutsError['code'], message: string) {
    super(message)
    this.code = code
  }
}

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
}

/** What was taken. */
export interface Taken {
  readonly groups: readonly FinishedGroup[]
  readonly cursor: number
  readonly state: SubmissionStatus['state']
}

/** Finished submissions that are remembered, so that one sent again is not rolled again. */
const remembered = 10_000

/**
 * Rolls what clients submit and keeps it until they have taken it. What waits to be rolled and what
 * waits to be taken are both bounded: the first by refusing, the second by rolling no further.
 */
export class Rollouts implements AsyncDisposable {
  readonly weights: WeightsDesk = openWeightsDesk()
  readonly #options: Required<RolloutsOptions>
  readonly #entries = new Map<string, Entry>()
  readonly #active = new Set<Entry>()
  readonly #opening = new Map<string, Promise<SubmissionStatus>>()
  readonly #policies = new Map<string, Promise<Policy>>()
  readonly #counts = {
    submissions: 0,
    queued: 0,
    running: 0,
    waiting: 0,
    finished: 0,
    sampledTokens: 0,
    failedAttempts: 0,
  }
  #policy: Policy
  #attempts = 0

  constructor(options: RolloutsOptions) {
    this.#options = { queue: 4096, results: 256, ...options }
    this.#policy = options.parts.policy
  }

  /** A task of a client: one of the service's, or its own. */
  task(entry: Submission['tasks'][number]): Promise<Task> {
    return taskOf(entry, { ...this.#options, place: 'task', index: 0 })
  }

  /** Counters for people and for Prometheus. */
  get counts(): Readonly<Record<string, number>> {
    return { ...this.#counts }
  }

  /** Takes a submission on; one that is sent again gives its status. */
  async submit(submission: Submission): Promise<SubmissionStatus> {
    const { id } = submission
    const digest = createHash('sha256').update(JSON.stringify(submission)).digest('hex')
    const isOpening = this.#opening.get(id)
    if (isOpening) await isOpening.catch(() => undefined)
    const known = this.#entries.get(id)
    if (known) {
      if (known.digest === digest) return statusOf(known)
      throw new RolloutsError(409, `"${id}" was submitted before with other content`)
    }
    const admitted = this.#admit(submission, digest).finally(() => this.#opening.delete(id))
    this.#opening.set(id, admitted)
    return await admitted
  }

  /** How far a submission is. */
  status(id: string): SubmissionStatus {
    return statusOf(this.#find(id))
  }

  /** Gives finished groups after a cursor; those up to it are let go of. */
  async take(id: string, options: TakeOptions = {}): Promise<Taken> {
    const { after = 0, max = 64, acknowledges = true } = options
    const entry = this.#find(id)
    if (acknowledges) this.acknowledge(id, after)
    const isNew = ({ cursor }: FinishedGroup): boolean => cursor > after
    if (!entry.results.some(isNew) && entry.state === 'running') await waitForResult(entry, options)
    const groups = entry.results.filter(isNew).slice(0, max)
    return { groups, cursor: groups.at(-1)?.cursor ?? after, state: entry.state }
  }

  /** Lets go of the groups up to a cursor: the client has them. */
  acknowledge(id: string, cursor: number): SubmissionStatus {
    const entry = this.#find(id)
    this.#counts.waiting -= acknowledge(entry, cursor)
    this.#start()
    return statusOf(entry)
  }

  /** Stops rolling a submission; what is finished stays to be taken. */
  cancel(id: string): SubmissionStatus {
    const entry = this.#find(id)
    if (entry.state === 'running') {
      entry.stop.abort(new Error('cancelled by the client'))
      this.#end(entry, 'cancelled')
    }
    this.#start()
    return statusOf(entry)
  }

  /** Submissions that name no policy are sampled from here from now on. */
  async moveTo(uri: string): Promise<void> {
    this.#policy = await this.#open(uri)
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const entry of [...this.#active]) {
      entry.stop.abort(new Error('the service was stopped'))
      this.#end(entry, 'cancelled')
      await entry.pipeline[Symbol.asyncDispose]()
    }
    const opened = await Promise.allSettled(this.#policies.values())
    for (const each of opened) {
      if (each.status === 'fulfilled') await each.value[Symbol.asyncDispose]()
    }
  }

  #find(id: string): Entry {
    const entry = this.#entries.get(id)
    if (!entry) throw new RolloutsError(404, `no submission called "${id}"`)
    return entry
  }

  #open(uri: string): Promise<Policy> {
    const known = this.#policies.get(uri)
    if (known) return known
    const opened = this.#options.openPolicy(uri).catch((cause: unknown) => {
      throw new RolloutsError(400, `policy: ${(cause as Error).message}`)
    })
    this.#policies.set(uri, opened)
    opened.catch(() => this.#policies.delete(uri))
    return opened
  }

  async #admit(submission: Submission, digest: string): Promise<SubmissionStatus> {
    const { queue, parts } = this.#options
    const format = readFormat(submission.format ?? 'jsonl')
    const { queued } = this.#counts
    const wanted = submission.tasks.length
    if (queued + wanted > queue) {
      throw new RolloutsError(
        429,
        `${queued} of ${queue} groups are queued: there is no room for ${wanted} more`,
      )
    }
    this.#counts.queued += wanted
    try {
      const jobs = await readJobs(submission, this.#options)
      const policy =
        submission.policy === undefined ? this.#policy : await this.#open(submission.policy)
      if (submission.version !== undefined) this.weights.announce(submission.version)
      const entry = openEntry(submission, {
        digest,
        format,
        jobs,
        parts,
        policy: this.weights.watch(policy),
      })
      this.#entries.set(submission.id, entry)
      this.#active.add(entry)
      this.#counts.submissions++
      this.#start()
      return statusOf(entry)
    } catch (error) {
      this.#counts.queued -= wanted
      throw error
    }
  }

  /** Starts groups while there is room for their attempts and for their results. */
  #start(): void {
    const { parts, results } = this.#options
    for (const entry of this.#active) {
      while (entry.next < entry.jobs.length) {
        const isFull = this.#attempts > 0 && this.#attempts + entry.size > rolloutsOf(parts)
        if (isFull || this.#counts.waiting + this.#counts.running >= results) return
        void this.#roll(entry, entry.jobs[entry.next++]!)
      }
    }
  }

  async #roll(entry: Entry, job: RolloutJob): Promise<void> {
    const { step } = entry.submission
    this.#counts.queued--
    this.#counts.running++
    this.#attempts += entry.size
    try {
      entry.pipeline.submit({ ...job, order: job.index, ...(step !== undefined && { step }) })
      await this.#keep(entry, await entry.pipeline.next())
    } catch (error) {
      if (entry.state === 'running') {
        entry.reason = describeCause(error)
        this.#end(entry, 'failed')
      }
    } finally {
      this.#counts.running--
      this.#attempts -= entry.size
      this.#start()
    }
  }

  async #keep(entry: Entry, group: Group): Promise<void> {
    const { parts } = this.#options
    const job = entry.jobs.find(({ id }) => id === group.id)!
    const answer = await groupToAnswer(group, job, { format: entry.format, parts })
    if (entry.state !== 'running') return
    entry.finished++
    entry.results.push({ cursor: entry.finished, ...answer })
    this.#counts.waiting++
    this.#counts.finished++
    this.#counts.failedAttempts += group.unscored.length
    for (const { trajectory } of [...group.members, ...group.unscored]) {
      this.#counts.sampledTokens += trajectory.usage.sampled
    }
    if (entry.finished === entry.jobs.length) this.#end(entry, 'finished')
    wake(entry)
  }

  #end(entry: Entry, state: SubmissionStatus['state']): void {
    entry.state = state
    this.#active.delete(entry)
    this.#counts.queued -= entry.jobs.length - entry.next
    void entry.pipeline[Symbol.asyncDispose]()
    wake(entry)
    this.#forget()
  }

  /** Old submissions that were taken whole make room for new ones. */
  #forget(): void {
    let over = this.#entries.size - remembered
    for (const [id, entry] of this.#entries) {
      if (over <= 0) return
      if (entry.state === 'running' || entry.results.length > 0) continue
      this.#entries.delete(id)
      over--
    }
  }
}

function readFormat(name: string): Format {
  try {
    const format = formatNamed(name)
    if (format.name !== 'parquet' && format.name !== 'tau-bench') return format
  } catch (error) {
    throw new RolloutsError(400, (error as Error).message)
  }
  throw new RolloutsError(400, `${name} is not a format of lines, which answers are made of`)
}

async function readJobs(
  { id, tasks }: Submission,
  { parts, findTask }: RolloutsOptions,
): Promise<readonly RolloutJob[]> {
  const jobs: RolloutJob[] = []
  for (const [index, entry] of tasks.entries()) {
    const task = await taskOf(entry, { place: `tasks[${index}]`, index, parts, findTask })
    jobs.push({ id: `${id}/${index}` as GroupId, task, index })
  }
  return jobs
}

/** A task by its id, or from its data. */
async function taskOf(
  entry: Submission['tasks'][number],
  context: Pick<RolloutsOptions, 'parts' | 'findTask'> & {
    readonly place: string
    readonly index: number
  },
): Promise<Task> {
  const { place, index, parts, findTask } = context
  if (typeof entry === 'object') return readTask(entry, { place, index, parts })
  const task = await findTask(String(entry))
  if (!task) throw new RolloutsError(400, `${place}: no task with id "${entry}"`)
  return task
}

function readTask(
  entry: Readonly<Record<string, unknown>>,
  { place, index, parts }: { place: string; index: number; parts: RollParts },
): Task {
  try {
    const data = parts.environment.readTask(entry)
    return { id: String(entry.id ?? index) as TaskId, data }
  } catch (cause) {
    throw new RolloutsError(400, `${place}: ${(cause as Error).message}`)
  }
}

function openEntry(
  submission: Submission,
  more: Pick<Entry, 'digest' | 'format' | 'jobs'> & {
    readonly parts: RollParts
    readonly policy: Policy
  },
): Entry {
  const { parts, policy, ...rest } = more
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
    pipeline: openRollPipeline({ ...parts, policy, group: size, seed, sampling, signal }),
    next: 0,
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
