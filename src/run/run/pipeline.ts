import { setMaxListeners } from 'node:events'
import { onAbort } from '../../base/core/call.ts'
import type { Task } from '../../base/core/environment.ts'
import type { Group, Scored, Unscored } from '../../base/core/group.ts'
import { type GroupId, type NonEmpty, seatGroup, type TreeId, treeId } from '../../base/core/ids.ts'
import { type Lane, makeLane } from '../../base/core/lane.ts'
import { absences } from '../../base/core/process/absences.ts'
import type { Usage } from '../../base/core/trajectory.ts'
import type { Tree } from '../../base/core/tree.ts'
import type { RolloutContext } from '../../engine/rollout/attempt.ts'
import { type GatherOptions, gather } from '../../engine/weigh/gather.ts'
import { gatherSeats, type SeatGroups } from '../../engine/weigh/seats.ts'
import { costOfTree } from '../store/journal-index.ts'
import type { RunWriter } from '../store/store.ts'
import type { Unfinished } from '../store/unfinished.ts'
import type { Budget } from './budget.ts'
import type { Elsewhere, Made, Returned } from './elsewhere.ts'
import { type MemberOptions, rollAttempt, rollShut, scoreAttempt } from './member.ts'
import { rollWhole, sumNotes } from './whole-group.ts'

/** What a pipeline is made of. */
export interface PipelineOptions extends GatherOptions, MemberOptions {
  /** Trees per task. */
  readonly group: number
  /** Attempts that may be open at one time. */
  readonly rollouts: number
  readonly seed: number
  readonly signal: AbortSignal
  readonly writer?: RunWriter
  readonly unfinished?: Unfinished
  /** Called when the pipeline is disposed of. */
  readonly onClose?: () => void
  /** Makes attempts in other places than this process. */
  readonly elsewhere?: Elsewhere
  /** The policy's URI for those places, if it is not the run's own. */
  readonly endpoint?: string
  /** Reserves what an attempt elsewhere may cost. */
  readonly lend?: Budget['lend']
  /** Reserves what a whole group elsewhere may cost. */
  readonly lease?: Budget['lease']
  /** Most trajectories of one tree. */
  readonly leaves?: number
  /** Trees that were finished before the run was interrupted. */
  readonly known?: ReadonlyMap<TreeId, Tree>
}

/** A task to roll a group for. */
export interface Job {
  readonly id: GroupId
  readonly task: Task
  /** The task's place in the run's order. */
  readonly order: number
  readonly step?: number
  /** Called whenever one of its attempts begins; until then it waits for a place. */
  readonly onBegin?: () => void
}

/**
 * Rolls groups side by side; each is delivered as soon as it is complete, so a slow one delays no other.
 * Disposing of it stops what is still running and waits until it has stopped.
 */
export interface Pipeline extends AsyncDisposable {
  submit(job: Job): void
  /** Groups that a job makes: one for every seat that learns. */
  readonly perJob: number
  /** The next group to be complete; rejects when the run is aborted or its store fails. */
  next(): Promise<Group>
  /** Groups that were submitted and not taken yet. */
  readonly pending: number
  /** Groups that are complete and can be taken without waiting. */
  readonly ready: number
  /** Attempts that were submitted and have not ended; counted singly, not by whole groups. */
  readonly attempts: number
  /** Resolves when the next attempt is over or the next group complete. */
  change(): Promise<void>
}

/** Opens a pipeline; nothing runs before a job is submitted. */
export function openPipeline(given: PipelineOptions): Pipeline {
  const stop = new AbortController()
  const options = { ...given, signal: AbortSignal.any([given.signal, stop.signal]) }
  // Hundreds of attempts listen to one signal, which is not a leak.
  setMaxListeners(0, options.signal)
  const running = new Set<Promise<SeatGroups>>()
  const perJob = learningSeatsOf(options.context).length
  const outlet = makeOutlet()
  let attempts = 0
  const shared: Shared = {
    lane: makeRolloutsLane(options),
    fail: error => stop.abort(error),
    over(count) {
      attempts -= count
      outlet.wake()
    },
  }

  return {
    perJob,
    get pending() {
      return outlet.pending
    },
    get ready() {
      return outlet.ready
    },
    get attempts() {
      return attempts
    },
    change: outlet.change,
    submit(job) {
      outlet.expect(perJob)
      attempts += options.group
      const groups = rollGroup(job, options, shared)
      running.add(groups)
      const settle = (): void => {
        running.delete(groups)
        for (let seat = 0; seat < perJob; seat++) outlet.give(groupOf(groups, seat))
      }
      // Deliver only settled groups, so that `next` never waits for a slow one.
      groups.then(settle, settle)
    },
    next: outlet.take,
    async [Symbol.asyncDispose]() {
      stop.abort(new Error('the run was left before its end'))
      await Promise.allSettled(running)
      options.onClose?.()
    },
  }
}

/**
 * Where complete groups are handed over: to whoever waits for one, else they wait to be taken. Those who
 * watch are told of every change.
 */
function makeOutlet() {
  const ready: Promise<Group>[] = []
  const waiting: ((group: Promise<Group>) => void)[] = []
  let pending = 0
  let watching: (() => void)[] = []
  const wake = (): void => {
    const woken = watching
    watching = []
    for (const each of woken) each()
  }
  return {
    get pending() {
      return pending
    },
    get ready() {
      return ready.length
    },
    expect(count: number): void {
      pending += count
    },
    give(group: Promise<Group>): void {
      const taker = waiting.shift()
      if (taker) taker(group)
      else ready.push(group)
      wake()
    },
    async take(): Promise<Group> {
      if (pending === 0) throw new Error('nothing was submitted that could be taken')
      try {
        return await (ready.shift() ?? new Promise<Group>(resolve => waiting.push(resolve)))
      } finally {
        pending--
      }
    },
    /** Tells those who watch that something has changed. */
    wake,
    change: () => new Promise<void>(resolve => watching.push(resolve)),
  }
}

/** The lane of whole attempts: as wide as is asked for, and as there is room elsewhere. */
function makeRolloutsLane({ rollouts, elsewhere, listen, signal }: PipelineOptions): Lane {
  const width = (): number => Math.max(rollouts, elsewhere?.room ?? 0)
  const lane = makeLane('rollouts', width())
  const stop = elsewhere?.watch(event => {
    lane.resize(width())
    listen?.(event)
  })
  if (stop) onAbort(signal, stop)
  return lane
}

/** One of the groups that a job makes. Its failure is reported when it is taken, and is never unhandled. */
function groupOf(groups: Promise<SeatGroups>, seat: number): Promise<Group> {
  const group = groups.then(({ learning }) => learning[seat]!)
  group.catch(() => {})
  return group
}

/** What the groups of a pipeline share. */
interface Shared {
  readonly lane: Lane
  /** Ends the run because its store failed. */
  fail(error: unknown): void
  /** Called when so many attempts have ended. */
  over(count: number): void
}

/** The seats of an attempt; one without a name if the environment names none. */
export function seatsOf({ environment }: Pick<RolloutContext, 'environment'>): NonEmpty<string> {
  return environment.seats ?? ['']
}

/** The seats that the policy plays, each of which has a group of its own. */
export function learningSeatsOf({
  environment,
  seats: others,
}: Pick<RolloutContext, 'environment' | 'seats'>): readonly string[] {
  return seatsOf({ environment }).filter(seat => !others?.has(seat))
}

async function rollGroup(job: Job, options: PipelineOptions, shared: Shared): Promise<SeatGroups> {
  const begun = await rollWhole(job, options, shared.over).catch((error: unknown) => {
    shared.fail(error)
    throw error
  })
  if (begun.kind === 'whole') return { learning: [begun.group], others: [] }
  const rolling = Array.from({ length: options.group }, async (_, member) => {
    const kept = begun.kept.get(treeId(job.id, member))
    if (kept) return kept.members
    try {
      return await rollMember(job, member, { options, shared, tries: begun.tries })
    } catch (error) {
      shared.fail(error)
      throw error
    } finally {
      shared.over(1)
    }
  })
  // All have stopped before the group is over.
  await Promise.allSettled(rolling)
  const members = await Promise.all(rolling)
  // Rewards that were cut short are not results: a resumed run scores these members again.
  options.signal.throwIfAborted()
  const { writer, listen } = options
  const groups = gatherGroups(job, members.flat(), options)
  for (const group of [...groups.others, ...groups.learning]) {
    await writer?.writeGroup(group, job.task, job.order)
  }
  for (const group of groups.learning) listen?.({ kind: 'group-end', group })
  return groups
}

function gatherGroups(
  job: Job,
  members: readonly (Scored | Unscored)[],
  options: PipelineOptions,
): SeatGroups {
  const { seats } = options.context.environment
  if (!seats) return { learning: [gather(job, members, options)], others: [] }
  return gatherSeats(job, members, {
    ...options,
    seats,
    players: options.context.seats ?? new Map(),
  })
}

async function rollMember(
  job: Job,
  member: number,
  { options, shared, tries }: { options: PipelineOptions; shared: Shared; tries: number },
): Promise<readonly (Scored | Unscored)[]> {
  const { signal, elsewhere } = options
  const known = knownTrees(job, member, options)
  if (!known && elsewhere && elsewhere.isOpen !== false) {
    return await shared.lane.run({ signal }, () =>
      rollAway(job, member, { ...options, elsewhere, tries }),
    )
  }
  const trees = known ?? (await shared.lane.run({ signal }, () => rollFresh(job, member, options)))
  return await scoreAttempt(trees, job.task, options)
}

/** The trees of every seat, if an attempt was finished before the run was interrupted. */
function knownTrees(
  job: Job,
  member: number,
  { known, context }: PipelineOptions,
): readonly Tree[] | undefined {
  const trees = seatsOf(context).map(seat => known?.get(treeId(seatGroup(job.id, seat), member)))
  return trees.every(tree => tree !== undefined) ? trees : undefined
}

async function rollFresh(
  job: Job,
  member: number,
  options: PipelineOptions,
): Promise<readonly Tree[]> {
  const { seed, signal, listen } = options
  if (absences.some) await absences.whenThere({ signal })
  job.onBegin?.()
  listen?.({ kind: 'attempt-start', task: job.task.id, member })
  const trees = await rollAttempt(options, { task: job.task, group: job.id, member, seed, signal })
  // An attempt that the run itself stopped is not finished: a resumed run goes on with it.
  signal.throwIfAborted()
  await keepTrees(treeId(job.id, member), { trees }, options)
  return trees
}

async function keepTrees(
  attempt: TreeId,
  { trees, sent }: Pick<Made, 'trees' | 'sent'>,
  { writer, unfinished, listen, context }: PipelineOptions,
): Promise<void> {
  if (sent) await writer?.writeSent({ bytes: sent.bytes, notes: sent.notes })
  else for (const tree of trees) await writer?.writeTree(tree)
  unfinished?.forget(attempt)
  for (const [index, tree] of trees.entries()) {
    const isOther = tree.seat !== undefined && context.seats?.has(tree.seat) === true
    const { line, ends, isFar } = sent?.trees[index] ?? {}
    const seen = { ...(line !== undefined && { line }), ...(ends && { ends }) }
    const known = { ...seen, ...(isFar && { isFar }) }
    listen?.({ kind: 'tree-end', tree, ...(isOther && { isOther }), ...known })
  }
}

type Away = PipelineOptions & {
  readonly elsewhere: Elsewhere
  /** How often it was in the hands of somebody who is gone. */
  readonly tries: number
}

/** Has an attempt made elsewhere, and stores it like one made here. */
async function rollAway(
  job: Job,
  member: number,
  options: Away,
): Promise<readonly (Scored | Unscored)[]> {
  const { task, id: group } = job
  const { seed, signal, listen, elsewhere, tries } = options
  const attempt = treeId(group, member)
  job.onBegin?.()
  if (tries === 0) listen?.({ kind: 'attempt-start', task: task.id, member })
  const returned = await askElsewhere(job, member, options)
  signal.throwIfAborted()
  if (returned.kind === 'made') {
    await keepTrees(attempt, returned, options)
    elsewhere.taken(attempt)
    for (const event of returned.events) listen?.(event)
    return returned.members
  }
  const trees = await rollShut(options, { task, group, member, seed, signal }, returned.reason)
  await keepTrees(attempt, { trees }, options)
  elsewhere.taken(attempt)
  return await scoreAttempt(trees, task, options)
}

/** Requests an attempt with as much of the budget as it may need, and settles its real cost. */
async function askElsewhere(
  { id: group, task }: Job,
  member: number,
  options: Away,
): Promise<Exclude<Returned, { readonly kind: 'spent' }>> {
  const { context, elsewhere, endpoint, leaves = 1, seed, signal, lend, tries } = options
  const { sampling, limits } = context
  const loan = await lend?.({ limits, leaves: leaves * seatsOf(context).length }, signal)
  let used = { sampled: 0, prompt: 0 }
  try {
    const more = {
      ...(loan && { allowance: loan.allowance }),
      ...(endpoint !== undefined && { endpoint }),
      ...(context.examples && { examples: context.examples.now }),
    }
    const work = { group, member, task, seed, sampling, limits, ...more }
    const returned = await elsewhere.make(work, { signal, tries })
    if (returned.kind === 'spent') throw loan!.end(returned.of)
    if (loan && returned.kind === 'made') used = usageOf(returned)
    return returned
  } finally {
    loan?.settle(used)
  }
}

/** What an attempt cost; whoever sent its trees has counted, so that they need not be read. */
function usageOf({ trees, sent }: Made): Usage {
  if (sent) return sumNotes(sent.notes)
  const costs = trees.map(costOfTree)
  return {
    sampled: costs.reduce((sum, { sampled }) => sum + sampled, 0),
    prompt: costs.reduce((sum, { prompt }) => sum + prompt, 0),
  }
}
