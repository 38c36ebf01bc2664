import type { Task } from '../core/environment.ts'
import { describeCause } from '../core/failure.ts'
import type { Group } from '../core/group.ts'
import type { GroupId } from '../core/ids.ts'
import type { Policy } from '../core/policy.ts'
import { type RollParts, rolloutsOf } from '../run/roll-groups.ts'
import { ClientPolicies, type LentPolicy } from './client-policies.ts'
import { digestOf } from './digest.ts'
import { openFailureTelling } from './group-failures.ts'
import { groupToAnswer, type WeighFor } from './rollouts-answer.ts'
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
import { RolloutsError } from './rollouts-error.ts'
import { openEntry, readFormat, readJobs, taskOf } from './rollouts-jobs.ts'
import { openWeightsDesk, type WeightsDesk } from './rollouts-policy.ts'
import {
  type DoneSubmission,
  endedLine,
  type LeftSubmission,
  type RolloutsRecord,
} from './rollouts-record.ts'

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
  /** Weighs a group for the trainer of a format: importance weights, shaped rewards. */
  readonly weigh?: WeighFor
  /** Tells the operator a line: why attempts fail. */
  tell?(line: string): void
  /** Finds a finished group of the resumed run. */
  findGroup?(id: GroupId): Promise<Group | undefined>
}

/** What was taken. */
export interface Taken {
  readonly groups: readonly FinishedGroup[]
  readonly cursor: number
  readonly state: SubmissionStatus['state']
}

/** Taken submissions that a service without a record remembers, so that one sent again is not rolled again. */
const remembered = 10_000

/**
 * Rolls what clients submit and keeps the results until they are taken. Both queues are bounded: new
 * submissions are refused if too much waits to be rolled, and rolling stops if too much waits to be taken.
 */
export class Rollouts implements AsyncDisposable {
  readonly weights: WeightsDesk
  readonly #options: RolloutsOptions & Required<Pick<RolloutsOptions, 'queue' | 'results'>>
  readonly #entries = new Map<string, Entry>()
  readonly #active = new Set<Entry>()
  readonly #opening = new Map<string, Promise<SubmissionStatus>>()
  /** What is remembered of completely taken submissions. */
  readonly #done = new Map<string, DoneSubmission>()
  readonly #policies: ClientPolicies
  readonly #tellFailures: ReturnType<typeof openFailureTelling>
  readonly #counts = {
    submissions: 0,
    queued: 0,
    running: 0,
    waiting: 0,
    finished: 0,
    sampledTokens: 0,
    failedAttempts: 0,
  }
  #policy: LentPolicy
  #attempts = 0
  #isClosed = false

  constructor(options: RolloutsOptions) {
    this.#options = { queue: 4096, results: 256, ...options }
    this.#tellFailures = openFailureTelling(line => options.tell?.(line))
    this.weights = openWeightsDesk(options.parts.elsewhere)
    this.#policy = { policy: options.parts.policy, giveBack: () => undefined }
    const open = (uri: string): Promise<Policy> =>
      options.openPolicy(uri).catch((cause: unknown) => {
        throw new RolloutsError(400, `policy: ${(cause as Error).message}`)
      })
    this.#policies = new ClientPolicies(open, options.idleSeconds ?? 600)
  }

  /** A task of a client: one of the service's, or its own. */
  task(entry: Submission['tasks'][number]): Promise<Task> {
    return taskOf(entry, { ...this.#options, place: 'task', index: 0 })
  }

  /** Counters for people and for Prometheus. */
  get counts(): Readonly<Record<string, number>> {
    return { ...this.#counts, policies: this.#policies.size, kept: this.#entries.size }
  }

  /** Takes a submission on; one that is sent again gives its status. */
  async submit(submission: Submission): Promise<SubmissionStatus> {
    const { id } = submission
    const digest = digestOf(submission)
    // Whoever waited with us may be the next to open it.
    while (this.#opening.has(id)) await this.#opening.get(id)?.catch(() => undefined)
    const known = this.#done.get(id) ?? this.#entries.get(id)
    if (known) {
      if (known.digest === digest) return this.status(id)
      throw new RolloutsError(409, `"${id}" was submitted before with other content`)
    }
    const admitted = this.#admit(submission, digest).finally(() => this.#opening.delete(id))
    this.#opening.set(id, admitted)
    return await admitted
  }

  /** How far a submission is. */
  status(id: string): SubmissionStatus {
    return this.#done.get(id)?.status ?? statusOf(this.#find(id))
  }

  /** Returns finished groups after a cursor; those up to it are forgotten. */
  async take(id: string, options: TakeOptions = {}): Promise<Taken> {
    const { after = 0, max = 64, acknowledges = true } = options
    if (acknowledges) this.acknowledge(id, after)
    const done = this.#done.get(id)
    if (done) return { groups: [], cursor: after, state: done.status.state }
    const entry = this.#find(id)
    const isNew = ({ cursor }: FinishedGroup): boolean => cursor > after
    if (!entry.results.some(isNew) && entry.state === 'running') await waitForResult(entry, options)
    const groups = entry.results.filter(isNew).slice(0, max)
    return { groups, cursor: groups.at(-1)?.cursor ?? after, state: entry.state }
  }

  /** Forgets the groups up to a cursor: the client has them. */
  acknowledge(id: string, cursor: number): SubmissionStatus {
    const done = this.#done.get(id)
    if (done) return done.status
    const entry = this.#find(id)
    const gone = acknowledge(entry, cursor)
    this.#counts.waiting -= gone
    if (gone > 0) void this.#note({ kind: 'taken', id, cursor: entry.taken })
    this.#forget(entry)
    this.#start()
    return statusOf(entry)
  }

  /** Stops rolling a submission; what is finished stays to be taken. */
  async cancel(id: string): Promise<SubmissionStatus> {
    const done = this.#done.get(id)
    if (done) return done.status
    const entry = this.#find(id)
    if (entry.state === 'running') {
      entry.stop.abort(new Error('cancelled by the client'))
      const isRecorded = this.#end(entry, 'cancelled')
      this.#start()
      await isRecorded
    }
    return statusOf(entry)
  }

  /** From now on, submissions that name no policy are sampled from this one. */
  async moveTo(uri: string): Promise<void> {
    const before = this.#policy
    this.#policy = await this.#policies.lend(uri)
    before.giveBack()
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#isClosed = true
    for (const entry of [...this.#active]) {
      entry.stop.abort(new Error('the service was stopped'))
      void this.#end(entry, 'cancelled')
      await entry.pipeline[Symbol.asyncDispose]()
    }
    await this.#policies[Symbol.asyncDispose]()
  }

  #find(id: string): Entry {
    const entry = this.#entries.get(id)
    if (!entry) throw new RolloutsError(404, `no submission called "${id}"`)
    return entry
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
      await this.#refuseFinished(jobs)
      const entry = await this.#open(submission, { digest, format, jobs, parts })
      await this.#record(entry)
      this.#enter(entry)
      this.#start()
      return statusOf(entry)
    } catch (error) {
      this.#counts.queued -= wanted
      throw error
    }
  }

  /** A group of the run is never replaced, even if the record that names its submission was lost. */
  async #refuseFinished(jobs: readonly RolloutJob[]): Promise<void> {
    for (const { id } of jobs) {
      if (!(await this.#options.findGroup?.(id))) continue
      throw new RolloutsError(409, `the run has a group "${id}" already: choose another id`)
    }
  }

  /** Records a submission before anything of it is rolled; one that cannot be recorded is not taken on. */
  async #record(entry: Entry): Promise<void> {
    const { submission, digest } = entry
    try {
      await this.#options.record?.write({ kind: 'submitted', submission, digest })
    } catch (error) {
      entry.giveBack()
      await entry.pipeline[Symbol.asyncDispose]()
      throw error
    }
  }

  /** Opens what a submission is rolled with. */
  async #open(
    submission: Submission,
    more: Pick<Entry, 'digest' | 'format' | 'jobs'> & { readonly parts: RollParts },
  ): Promise<Entry> {
    const lent =
      submission.policy === undefined
        ? { ...this.#policy, giveBack: () => undefined }
        : await this.#policies.lend(submission.policy)
    if (submission.version !== undefined) await this.weights.announce(submission.version)
    const policy = this.weights.watch(lent.policy)
    return openEntry(submission, { ...more, policy, giveBack: lent.giveBack })
  }

  /** Takes a submission in, to be rolled when there is room. */
  #enter(entry: Entry): void {
    this.#entries.set(entry.submission.id, entry)
    this.#active.add(entry)
    this.#counts.submissions++
  }

  /** Goes on with what the service before left; finished groups wait to be taken under their cursors. */
  async restore(): Promise<void> {
    const { left = [], done = [] } = this.#options.record ?? {}
    for (const each of done) this.#remember(each)
    for (const each of left) await this.#restoreOne(each)
    this.#start()
  }

  async #restoreOne(left: LeftSubmission): Promise<void> {
    const { submission, digest, finished, taken, state, reason } = left
    const { parts, findGroup, weigh } = this.#options
    const format = readFormat(submission.format ?? 'jsonl')
    const jobs = await readJobs(submission, this.#options)
    const entry = await this.#open(submission, { digest, format, jobs, parts })
    this.#enter(entry)
    this.#counts.queued += jobs.length
    // A group may be in the journal although the record was cut before its line.
    for (const index of new Set([...finished, ...jobs.keys()])) {
      const group = await findGroup?.(jobs[index]!.id)
      if (!group) continue
      entry.pending.splice(entry.pending.indexOf(jobs[index]!), 1)
      this.#counts.queued--
      entry.finished++
      if (!finished.includes(index)) await this.#recordFinished(entry, jobs[index]!)
      if (entry.finished <= taken) continue
      const answer = await groupToAnswer(group, jobs[index]!, { format, parts, weigh })
      entry.results.push({ cursor: entry.finished, ...answer })
      this.#counts.waiting++
    }
    entry.taken = taken
    if (entry.finished === jobs.length) await this.#end(entry, 'finished')
    // A finished group that was lost, for instance in a power cut, is rolled again.
    else if (state === 'cancelled' || state === 'failed') await this.#end(entry, state, reason)
  }

  async #recordFinished({ submission }: Entry, { index }: RolloutJob): Promise<void> {
    await this.#options.record?.write({ kind: 'finished', id: submission.id, index })
  }

  /** Records the progress of a submission. It may be lost: then a group is given once more. */
  async #note(line: Parameters<RolloutsRecord['write']>[0]): Promise<void> {
    if (this.#isClosed) return
    await this.#options.record?.write(line).catch(() => undefined)
  }

  /** Starts groups while there is room for their attempts and for their results. */
  #start(): void {
    const { parts, results } = this.#options
    for (const entry of this.#active) {
      while (entry.pending.length > 0) {
        const isFull = this.#attempts > 0 && this.#attempts + entry.size > rolloutsOf(parts)
        if (isFull || this.#counts.waiting + this.#counts.running >= results) return
        void this.#roll(entry, entry.pending.shift()!)
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
        void this.#end(entry, 'failed', describeCause(error))
      }
    } finally {
      this.#counts.running--
      this.#attempts -= entry.size
      this.#start()
    }
  }

  async #keep(entry: Entry, group: Group): Promise<void> {
    const { parts, weigh } = this.#options
    const job = entry.jobs.find(({ id }) => id === group.id)!
    const answer = await groupToAnswer(group, job, { format: entry.format, parts, weigh })
    if (entry.state !== 'running') return
    // Before a client can have it: the order of these lines is that of the cursors.
    await this.#recordFinished(entry, job)
    if (entry.state !== 'running') return
    this.#tellFailures(answer)
    entry.finished++
    entry.results.push({ cursor: entry.finished, ...answer })
    this.#counts.waiting++
    this.#counts.finished++
    this.#counts.failedAttempts += group.unscored.length
    for (const { trajectory } of [...group.members, ...group.unscored]) {
      this.#counts.sampledTokens += trajectory.usage.sampled
    }
    if (entry.finished === entry.jobs.length) void this.#end(entry, 'finished')
    wake(entry)
  }

  /** Ends a submission now; resolves when that is recorded. */
  async #end(entry: Entry, state: SubmissionStatus['state'], reason?: string): Promise<void> {
    entry.state = state
    if (reason !== undefined) entry.reason = reason
    this.#active.delete(entry)
    this.#counts.queued -= entry.pending.length
    entry.pending.length = 0
    entry.giveBack()
    const isRecorded = this.#note(endedLine(entry.submission.id, state, reason))
    void entry.pipeline[Symbol.asyncDispose]()
    wake(entry)
    this.#forget(entry)
    await isRecorded
  }

  /** Of a completely taken submission only the name and the end are kept. */
  #forget(entry: Entry): void {
    const { submission, digest } = entry
    if (entry.state === 'running' || entry.taken < entry.finished) return
    this.#entries.delete(submission.id)
    this.#remember({ digest, status: statusOf(entry) })
  }

  #remember(done: DoneSubmission): void {
    this.#done.set(done.status.id, done)
    // A run folder keeps the groups of every name: a name used twice would replace them.
    if (this.#options.record) return
    for (const id of this.#done.keys()) {
      if (this.#done.size <= remembered) return
      this.#done.delete(id)
    }
  }
}
