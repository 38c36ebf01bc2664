import type { Task } from '../../base/core/environment.ts'
import { describeCause } from '../../base/core/failure.ts'
import type { Group } from '../../base/core/group.ts'
import type { GroupId } from '../../base/core/ids.ts'
import { learningSeatsOf } from '../../run/run/pipeline.ts'
import { rolloutsOf } from '../../run/run/roll-groups.ts'
import { RefusedRequest } from '../door/refused-request.ts'
import { ClientPolicies } from './client-policies.ts'
import { digestOf } from './digest.ts'
import { DoneSubmissions } from './done-submissions.ts'
import { makeFailureTelling } from './group-failures.ts'
import { groupToAnswer } from './rollouts-answer.ts'
import type { FinishedGroup, Submission, SubmissionStatus, Weights } from './rollouts-api.ts'
import {
  acknowledge,
  checkCursor,
  type Entry,
  type GroupPlace,
  placeOf,
  type RolloutJob,
  statusOf,
  type Taken,
  type TakeOptions,
  waitForResult,
  wake,
} from './rollouts-entry.ts'
import { checkRoom, groupsOf, makeEntry, readFormat, readJobs, taskOf } from './rollouts-jobs.ts'
import type { RolloutsOptions } from './rollouts-options.ts'
import { endedLine, type LeftSubmission, type RolloutsRecord } from './rollouts-record.ts'
import { asideOf, restoreFinished } from './rollouts-restore.ts'
import { makeStallTelling } from './stall-telling.ts'
import { Trainers, unnamed } from './trainers.ts'

/**
 * Rolls what clients submit and keeps the results until they are taken. Both queues are bounded: new
 * submissions are refused if too much waits to be rolled, and rolling stops if too much waits to be taken.
 */
export class Rollouts implements AsyncDisposable {
  readonly trainers: Trainers
  readonly #options: RolloutsOptions & Required<Pick<RolloutsOptions, 'queue' | 'results'>>
  readonly #entries = new Map<string, Entry>()
  readonly #active = new Set<Entry>()
  readonly #opening = new Map<string, Promise<SubmissionStatus>>()
  readonly #done: DoneSubmissions
  readonly #policies: ClientPolicies
  readonly #tellFailures: ReturnType<typeof makeFailureTelling>
  readonly #tellStall: ReturnType<typeof makeStallTelling>
  readonly #counts = {
    submissions: 0,
    queued: 0,
    running: 0,
    waiting: 0,
    finished: 0,
    sampledTokens: 0,
    failedAttempts: 0,
  }
  /** Groups that a task makes. */
  readonly #perTask: number
  #attempts = 0
  #isClosed = false

  constructor(options: RolloutsOptions) {
    this.#options = { queue: 4096, results: 256, ...options }
    this.#done = new DoneSubmissions({ keepsAll: options.record !== undefined })
    this.#perTask = learningSeatsOf(options.parts).length
    const tell = (line: string): void => options.tell?.(line)
    this.#tellFailures = makeFailureTelling(tell)
    this.#tellStall = makeStallTelling(tell)
    this.trainers = new Trainers(options.parts.elsewhere, tell)
    const { idleSeconds = 600, openPolicy: open, parts } = options
    this.#policies = new ClientPolicies({ own: parts.policy, idleSeconds, open })
    options.disk?.onRoom(() => this.#start())
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
      throw new RefusedRequest(409, `"${id}" was submitted before with other content`)
    }
    this.check()
    const admitted = this.#admit(submission, digest).finally(() => this.#opening.delete(id))
    this.#opening.set(id, admitted)
    return await admitted
  }

  /** Throws while nothing can be taken on. */
  check(): void {
    this.#options.disk?.check()
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
    const entry = this.#find(id, after)
    const isNew = ({ cursor }: FinishedGroup): boolean => cursor > after
    if (!entry.results.some(isNew) && entry.state === 'running') await waitForResult(entry, options)
    const groups = entry.results.filter(isNew).slice(0, max)
    return { groups, cursor: groups.at(-1)?.cursor ?? after, state: entry.state }
  }

  /** Forgets the groups up to a cursor: the client has them. */
  acknowledge(id: string, cursor: number): SubmissionStatus {
    const done = this.#done.get(id)
    if (done) return done.status
    const entry = this.#find(id, cursor)
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

  /** Announces new weights; submissions of their trainer that name no policy are sampled from where they are served. */
  async announce({ interrupt = false, ...announced }: Weights): Promise<void> {
    const { version, policy, trainer = unnamed } = announced
    const desk = this.trainers.of(trainer)
    if (policy !== undefined) await this.#policies.moveTo(trainer, policy)
    await this.#write({ kind: 'weights', ...announced })
    await desk.announce(version, { interrupt })
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#isClosed = true
    this.#options.disk?.end()
    for (const entry of [...this.#active]) {
      entry.stop.abort(new Error('the service was stopped'))
      void this.#end(entry, 'cancelled')
      await entry.pipeline[Symbol.asyncDispose]()
    }
    this.trainers[Symbol.dispose]()
    await this.#policies[Symbol.asyncDispose]()
  }

  get #isStopping(): boolean {
    return this.#isClosed || this.#options.parts.signal?.aborted === true
  }

  #find(id: string, cursor = 0): Entry {
    const entry = this.#entries.get(id)
    if (!entry) throw new RefusedRequest(404, `no submission called "${id}"`)
    checkCursor(entry, cursor)
    return entry
  }

  async #admit(submission: Submission, digest: string): Promise<SubmissionStatus> {
    const { queue, parts } = this.#options
    const format = readFormat(submission.format ?? 'jsonl')
    const { queued } = this.#counts
    const wanted = submission.tasks.length * this.#perTask
    checkRoom(wanted, { queued, queue })
    this.#counts.queued += wanted
    try {
      const awaited = groupsOf(await readJobs(submission, this.#options), parts)
      await this.#refuseFinished([...awaited.keys()])
      const entry = await this.#open(submission, { digest, format, awaited })
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
  async #refuseFinished(groups: readonly GroupId[]): Promise<void> {
    for (const id of groups) {
      if (!(await this.#options.findGroup?.(id))) continue
      throw new RefusedRequest(409, `the run has a group "${id}" already: choose another id`)
    }
  }

  /** Records a submission before anything of it is rolled; one that cannot be recorded is not taken on. */
  async #record(entry: Entry): Promise<void> {
    const { submission, digest, endpoint, awaited } = entry
    // Whoever goes on with it samples from the same policy.
    const policy = endpoint === undefined ? {} : { policy: endpoint }
    try {
      await this.#write({
        kind: 'submitted',
        submission: { ...submission, ...policy },
        digest,
        groups: awaited.size,
      })
    } catch (error) {
      entry.giveBack()
      await entry.pipeline[Symbol.asyncDispose]()
      throw error
    }
  }

  /** Opens what a submission is rolled with. */
  async #open(
    submission: Submission,
    more: Pick<Entry, 'digest' | 'format' | 'awaited'>,
  ): Promise<Entry> {
    const { trainer = unnamed, version } = submission
    const desk = this.trainers.of(trainer)
    const { policy, ...lent } = await this.#policies.lend(trainer, submission.policy)
    if (version !== undefined) await desk.announce(version)
    const parts = this.trainers.partsOf(trainer, this.#options.parts)
    return makeEntry(submission, { ...more, ...lent, parts, policy: desk.watch(policy) })
  }

  /** Takes a submission in, to be rolled when there is room. */
  #enter(entry: Entry): void {
    this.#entries.set(entry.submission.id, entry)
    this.#active.add(entry)
    this.#counts.submissions++
  }

  /** Goes on with what the service before left; finished groups wait to be taken under their cursors. */
  async restore(): Promise<void> {
    const { left = [], done = [], weights = [] } = this.#options.record ?? {}
    for (const each of done) this.#done.add(each)
    for (const each of left) {
      await this.#restoreOne(each).catch((cause: unknown) => this.#setAside(each, cause))
    }
    // After them: they sample from the policies that were announced when they came.
    for (const { trainer = unnamed, policy, version } of weights) {
      if (policy !== undefined) await this.#policies.moveTo(trainer, policy)
      await this.trainers.of(trainer).announce(version)
    }
    this.#start()
  }

  async #restoreOne(left: LeftSubmission): Promise<void> {
    const { submission, digest, taken, state, reason } = left
    const { parts, weigh, findGroup } = this.#options
    const format = readFormat(submission.format ?? 'jsonl')
    const awaited = groupsOf(await readJobs(submission, this.#options), parts)
    const { finished, results, unrecorded } = await restoreFinished(left, awaited, {
      find: async id => await findGroup?.(id),
      toAnswer: (group, job) => groupToAnswer(group, job, { format, parts, weigh }),
    })
    const isStopped = state === 'cancelled' || state === 'failed'
    const more = { digest, format, awaited }
    // What is not rolled any more needs no policy, which may be gone.
    const entry =
      isStopped || awaited.size === 0
        ? makeEntry(submission, { ...more, parts, policy: parts.policy, giveBack: () => undefined })
        : await this.#open(submission, more)
    entry.finished = finished
    entry.taken = taken
    entry.results.push(...results)
    this.#enter(entry)
    this.#counts.waiting += results.length
    this.#counts.queued += entry.pending.length * this.#perTask
    for (const place of unrecorded) await this.#recordFinished(entry, place)
    if (awaited.size === 0) await this.#end(entry, 'finished')
    else if (isStopped) await this.#end(entry, state, reason)
  }

  /** A submission that cannot go on as the service is started now stays in the record, for a start that can. */
  #setAside(left: LeftSubmission, cause: unknown): void {
    if (!(cause instanceof RefusedRequest)) throw cause
    const aside = asideOf(left, cause)
    this.#options.tell?.(`submission "${aside.status.id}" is set aside: ${aside.status.reason}`)
    this.#done.add(aside)
  }

  async #recordFinished({ submission }: Entry, place: GroupPlace): Promise<void> {
    const { record, disk } = this.#options
    const write = async () => record?.write({ kind: 'finished', id: submission.id, ...place })
    await (disk?.keep(write) ?? write())
  }

  /** Records what a client is told at once, or refuses it while the disk is full. */
  async #write(line: Parameters<RolloutsRecord['write']>[0]): Promise<void> {
    const { record, disk } = this.#options
    if (!record) return
    const write = (): Promise<void> => record.write(line)
    await (disk?.once(write, () => record.probe()) ?? write())
  }

  /** Records the progress of a submission. It may be lost: then a group is given once more. */
  async #note(line: Parameters<RolloutsRecord['write']>[0]): Promise<void> {
    if (this.#isClosed) return
    await this.#options.record?.write(line).catch(() => undefined)
  }

  /** Starts groups while there is room for their attempts and for their results. */
  #start(): void {
    if (this.#isStopping || this.#options.disk?.isFull) return
    const { parts, results } = this.#options
    for (const entry of this.#active) {
      while (entry.pending.length > 0) {
        const isFull = this.#attempts > 0 && this.#attempts + entry.size > rolloutsOf(parts)
        if (isFull) return
        const { waiting, running } = this.#counts
        const held = waiting + running
        if (held > 0 && held + this.#perTask > results) {
          if (running === 0) this.#tellStall(this.#entries.values())
          return
        }
        void this.#roll(entry, entry.pending.shift()!)
      }
    }
  }

  async #roll(entry: Entry, job: RolloutJob): Promise<void> {
    const { step } = entry.submission
    this.#counts.queued -= this.#perTask
    this.#counts.running += this.#perTask
    this.#attempts += entry.size
    try {
      entry.pipeline.submit({ ...job, order: job.index, ...(step !== undefined && { step }) })
      for (let group = 0; group < this.#perTask; group++) {
        await this.#keep(entry, await entry.pipeline.next())
      }
    } catch (error) {
      // What the end of the service cuts short is left to the next one.
      if (entry.state === 'running' && !this.#isStopping) {
        void this.#end(entry, 'failed', describeCause(error))
      }
    } finally {
      this.#counts.running -= this.#perTask
      this.#attempts -= entry.size
      this.#start()
    }
  }

  async #keep(entry: Entry, group: Group): Promise<void> {
    const { parts, weigh } = this.#options
    const job = entry.awaited.get(group.id)
    // One that was finished before the service was started again is not given twice.
    if (!job) return
    const answer = await groupToAnswer(group, job, { format: entry.format, parts, weigh })
    if (entry.state !== 'running') return
    // Before a client can have it: the order of these lines is that of the cursors.
    await this.#recordFinished(entry, placeOf(answer))
    if (entry.state !== 'running') return
    this.#tellFailures(answer)
    entry.awaited.delete(group.id)
    entry.finished++
    entry.results.push({ cursor: entry.finished, ...answer })
    this.#counts.waiting++
    this.#counts.finished++
    this.#counts.failedAttempts += group.unscored.length
    for (const { trajectory } of [...group.members, ...group.unscored]) {
      this.#counts.sampledTokens += trajectory.usage.sampled
    }
    if (entry.awaited.size === 0) void this.#end(entry, 'finished')
    wake(entry)
  }

  /** Ends a submission now; resolves when that is recorded. */
  async #end(entry: Entry, state: SubmissionStatus['state'], reason?: string): Promise<void> {
    entry.state = state
    if (reason !== undefined) entry.reason = reason
    this.#active.delete(entry)
    this.#counts.queued -= entry.pending.length * this.#perTask
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
    this.#done.add({ digest, status: statusOf(entry) })
  }
}
