import { setMaxListeners } from 'node:events'
import type { Task } from '../core/environment.ts'
import type { Group, Scored, Unscored } from '../core/group.ts'
import { type GroupId, type NonEmpty, seatGroup, type TreeId, treeId } from '../core/ids.ts'
import { type Lane, openLane } from '../core/lane.ts'
import type { Tree } from '../core/tree.ts'
import type { Attempt, Instrument, RolloutContext } from '../rollout/attempt.ts'
import { scoreTree } from '../rollout/score.ts'
import type { Strategy } from '../rollout/strategy.ts'
import type { RunWriter } from '../store/store.ts'
import type { Unfinished } from '../store/unfinished.ts'
import type { Listen } from '../watch/events.ts'
import { type GatherOptions, gather } from '../weigh/gather.ts'
import { gatherSeats, type SeatGroups } from '../weigh/seats.ts'

/** What a pipeline is made of. */
export interface PipelineOptions extends GatherOptions {
  readonly context: RolloutContext
  readonly strategy: Strategy
  readonly reward: RolloutContext['environment']['reward']
  /** Trees per task. */
  readonly group: number
  /** Attempts that may be open at one time. */
  readonly rollouts: number
  readonly seed: number
  readonly signal: AbortSignal
  readonly writer?: RunWriter
  readonly listen?: Listen
  /** Put around every attempt, the first innermost. */
  readonly instruments?: readonly Instrument[]
  /** Called when the pipeline is disposed of. */
  readonly onClose?: () => void
  /** Keeps what unfinished attempts came to. */
  readonly unfinished?: Unfinished
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
}

/**
 * Rolls groups side by side; each comes out as soon as it is complete, slow ones delay nobody.
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
  /** Attempts that were submitted and are not over: a group's last one does not count for eight. */
  readonly attempts: number
  /** Resolves when the next attempt is over or the next group complete. */
  change(): Promise<void>
}

/** Opens a pipeline; nothing runs before a job is submitted. */
export function openPipeline(given: PipelineOptions): Pipeline {
  const stop = new AbortController()
  const options = { ...given, signal: AbortSignal.any([given.signal, stop.signal]) }
  // Hundreds of attempts wait on one signal; that is no leak.
  setMaxListeners(0, options.signal)
  const lane = openLane('rollouts', options.rollouts)
  const running = new Set<Promise<SeatGroups>>()
  const perJob = seatsOf(options.context).filter(seat => !options.context.seats?.has(seat)).length
  const ready: Promise<Group>[] = []
  const waiting: ((group: Promise<Group>) => void)[] = []
  let pending = 0
  let attempts = 0
  let watching: (() => void)[] = []

  const change = (): void => {
    const woken = watching
    watching = []
    for (const wake of woken) wake()
  }
  const deliver = (group: Promise<Group>): void => {
    const taker = waiting.shift()
    if (taker) taker(group)
    else ready.push(group)
    change()
  }
  const shared: Shared = {
    lane,
    fail: error => stop.abort(error),
    over() {
      attempts--
      change()
    },
  }

  return {
    perJob,
    get pending() {
      return pending
    },
    get ready() {
      return ready.length
    },
    get attempts() {
      return attempts
    },
    change: () => new Promise(resolve => watching.push(resolve)),
    submit(job) {
      pending += perJob
      attempts += options.group
      const groups = rollGroup(job, options, shared)
      running.add(groups)
      const settle = (): void => {
        running.delete(groups)
        for (let index = 0; index < perJob; index++) {
          const group = groups.then(({ learning }) => learning[index]!)
          // Whoever takes it hears of it; nobody has to.
          group.catch(() => {})
          deliver(group)
        }
      }
      // Delivered once settled, so that whoever takes one never waits for a slow one.
      groups.then(settle, settle)
    },
    async next() {
      if (pending === 0) throw new Error('nothing was submitted that could be taken')
      try {
        return await (ready.shift() ?? new Promise<Group>(resolve => waiting.push(resolve)))
      } finally {
        pending--
      }
    },
    async [Symbol.asyncDispose]() {
      stop.abort(new Error('the run was left before its end'))
      await Promise.allSettled(running)
      options.onClose?.()
    },
  }
}

/** What the groups of a pipeline share. */
interface Shared {
  readonly lane: Lane
  /** Ends the run: its store failed. */
  fail(error: unknown): void
  /** An attempt is over. */
  over(): void
}

/** The seats of an attempt; one without a name where the environment names none. */
export function seatsOf({ environment }: Pick<RolloutContext, 'environment'>): NonEmpty<string> {
  return environment.seats ?? ['']
}

async function rollGroup(job: Job, options: PipelineOptions, shared: Shared): Promise<SeatGroups> {
  const rolling = Array.from({ length: options.group }, (_, member) =>
    rollMember(job, member, { options, shared })
      .catch((error: unknown) => {
        shared.fail(error)
        throw error
      })
      .finally(shared.over),
  )
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
  { options, shared }: { options: PipelineOptions; shared: Shared },
): Promise<readonly (Scored | Unscored)[]> {
  const { context, reward, signal, listen } = options
  const trees =
    knownTrees(job, member, options) ??
    (await shared.lane.run({ signal }, () => rollFresh(job, member, options)))
  const { lanes, guards } = context
  const score = async (tree: Tree): Promise<readonly (Scored | Unscored)[]> => {
    const started = context.clock()
    const scored = await scoreTree(tree, job.task, { reward, lanes, guards, signal })
    listen?.({ kind: 'score-end', tree: tree.id, seconds: context.clock() - started })
    return scored
  }
  return (await Promise.all(trees.map(score))).flat()
}

/** The trees of every seat, where an attempt was finished before the run was interrupted. */
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
  const { seed, signal, writer, listen, unfinished } = options
  listen?.({ kind: 'attempt-start', task: job.task.id, member })
  const trees = [
    await attempt(options, { task: job.task, group: job.id, member, seed, signal }),
  ].flat() as Tree[]
  // An attempt that the run itself stopped is not finished: a resumed run goes on with it.
  signal.throwIfAborted()
  for (const tree of trees) await writer?.writeTree(tree)
  unfinished?.forget(treeId(job.id, member))
  for (const tree of trees) listen?.({ kind: 'tree-end', tree })
  return trees
}

function attempt(options: PipelineOptions, which: Attempt): ReturnType<Strategy> {
  const { strategy, instruments = [], unfinished } = options
  const context = instruments.reduce((inner, around) => around(inner, which), options.context)
  return unfinished ? unfinished.roll(strategy, context, which) : strategy(context, which)
}
