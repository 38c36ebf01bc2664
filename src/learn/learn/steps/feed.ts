import type { Task } from '../../../base/core/environment.ts'
import { type Group, isUseful } from '../../../base/core/group.ts'
import { type GroupId, seatGroup } from '../../../base/core/ids.ts'
import { makeWeightsGate, type OnUpdate } from '../../../run/run/pause.ts'
import { learningSeatsOf } from '../../../run/run/pipeline.ts'
import { openRollPipeline, type RollParts } from '../../../run/run/roll-groups.ts'
import type { TaskSampler } from '../../../run/tasks/sample-tasks.ts'
import type { RolledAhead } from '../../../run/watch/events.ts'
import { makeOrder, type OrderMemory, type Placed } from './order.ts'
import { makePace, type Pace } from './pace.ts'
import { ageOfGroup, type VersionHistory } from './staleness.ts'

/** What a step learns from, whoever makes it. */
export interface FedOptions {
  /** Groups that a step learns from. */
  readonly tasksPerStep: number
  /** How many steps old training data may be. */
  readonly maxStaleness: number
  readonly onUpdate: OnUpdate
  readonly history: VersionHistory
  /** The first step that is fed. */
  readonly first: number
}

/** Opens a feed of groups that others make, such as agents behind a gateway. */
export type OpenFeed = (parts: RollParts, options: FedOptions) => Promise<Feed>

/** How far rolling may run ahead of learning. */
export interface FeedOptions<Data> extends FedOptions {
  readonly tasks: Pick<TaskSampler<Data>, 'at' | 'find'>
  /** Extra groups per group of a step, for those that filters empty or that grow too old. */
  readonly refill: number
  /** Most steps that rolling may be ahead; no more than `maxStaleness`. */
  readonly lookAhead: number
  /** The last step that is fed. */
  readonly last: number
  /** Seconds, as they pass. */
  readonly clock: () => number
  /** Where a run that was interrupted goes on. */
  readonly before?: OrderMemory | undefined
}

/** What a step learns from. */
export interface Fed {
  readonly groups: readonly Group[]
  /** Groups that were rolled for it in vain: they had grown too old, or filters had emptied them. */
  readonly refused: readonly Group[]
  /** Those of them that had grown too old. */
  readonly stale: readonly Group[]
  /** How rolling was ahead, if it may be. */
  readonly ahead?: Pick<RolledAhead, 'steps' | 'held' | 'slowest'>
  /** Whether other weights than those that learn sampled all of it. */
  readonly isOffPolicy?: boolean
}

/** Rolls groups while others are learned from, and loses none of them. */
export interface Feed extends AsyncDisposable {
  /** As many groups as a step wants, the oldest begun first, in the order of their tasks. */
  take(): Promise<Fed>
  /** What an interrupted run needs to go on so that no task is left out. */
  memory?(): OrderMemory
  /** Runs what ends a step by changing the weights, while nothing is sampled from them. */
  change<T>(work: () => Promise<T>): Promise<T>
}

/**
 * Opens a feed. Groups are begun while fewer than (ahead + steps done + 1) × groups per step were accepted or are
 * running, where `ahead` is what the measured times need and at most `lookAhead`. A step learns from the oldest begun that
 * are complete, and waits for those that would be too old for the next: no more than a step's groups ever
 * fall due at once, and every group that was begun is learned from. What is too old all the same, since a server was
 * late with its weights, is refused and counted, and its task comes again.
 */
export function openFeed<Data>(parts: RollParts<Data>, options: FeedOptions<Data>): Feed {
  const { tasksPerStep, maxStaleness, lookAhead, clock, history } = options
  const gate = makeWeightsGate(options.onUpdate)
  const pace = makePace(tasksPerStep)
  const instruments = [gate.instrument, ...(parts.instruments ?? [])]
  const rolling = openRolling({ ...parts, instruments }, options, pace)
  const wanted = tasksPerStep * rolling.perJob
  const most = wanted * options.refill
  let complete: readonly Complete<Data>[] = []
  let left: number | undefined

  function leave(vain: Group[], { group }: Complete<Data>): void {
    vain.push(group)
    rolling.refuse(vain.length <= most)
  }
  function leaveOld(vain: Group[]): readonly Group[] {
    const isOld = ({ group }: Complete<Data>) => ageOfGroup(group, history) > maxStaleness
    const old = complete.filter(isOld)
    complete = complete.filter(each => !isOld(each))
    rolling.repeat(new Set(old.map(({ begun }) => begun.task)))
    for (const each of old) leave(vain, each)
    return old.map(({ group }) => group)
  }
  async function receive(vain: Group[]): Promise<void> {
    const one = await rolling.next()
    if (isUseful(one.group)) complete = [...complete, one]
    else leave(vain, one)
  }

  return {
    async change(work) {
      const changed = await gate.change(work)
      // Not only when the next step asks for groups: until then, the cores would have less to do.
      rolling.advance()
      return changed
    },
    memory: () => rolling.memory(complete.map(({ begun }) => begun)),
    async take() {
      if (left !== undefined) pace.learned(clock() - left)
      const refused: Group[] = []
      const stale: Group[] = []
      let enoughAt: number | undefined
      rolling.fill()
      for (;;) {
        while (rolling.ready > 0) await receive(refused)
        stale.push(...leaveOld(refused))
        if (complete.length >= wanted) enoughAt ??= clock()
        if (rolling.pending === 0 || (complete.length >= wanted && !rolling.isDue())) break
        await receive(refused)
      }
      const inOrder = complete.toSorted((a, b) => a.begun.order - b.begun.order)
      complete = inOrder.slice(wanted)
      left = clock()
      const groups = inOrder.slice(0, wanted).map(({ group }) => group)
      const held = left - (enoughAt ?? left)
      const ahead = { steps: pace.ahead(lookAhead), held, slowest: pace.slowest() }
      return { groups, refused, stale, ahead }
    },
    [Symbol.asyncDispose]: () => rolling[Symbol.asyncDispose](),
  }
}

/** A group that was submitted. */
interface Begun<Data> extends Placed<Data> {
  /** When its first attempt began, and after how many steps; unknown while it waits for a place. */
  born?: { readonly done: number; readonly at: number }
}

interface Complete<Data> {
  readonly group: Group
  readonly begun: Begun<Data>
}

/** Begins groups and knows since when each of them runs. */
interface Rolling<Data> extends AsyncDisposable {
  /** Groups of one task: one for every seat that learns. */
  readonly perJob: number
  readonly ready: number
  readonly pending: number
  /** Begins groups until it is as far ahead as it may be. */
  fill(): void
  /** A step is done. */
  advance(): void
  /** The next group to be complete. */
  next(): Promise<Complete<Data>>
  /** Whether a group runs that no step after this one could learn from. */
  isDue(): boolean
  /** Nothing is learned from a group; another may be begun in its place. */
  refuse(isReplaced: boolean): void
  /** These tasks come before all others. */
  repeat(tasks: Iterable<Task<Data>>): void
  memory(complete: readonly Begun<Data>[]): OrderMemory
}

function openRolling<Data>(
  parts: RollParts<Data>,
  options: FeedOptions<Data>,
  pace: Pace,
): Rolling<Data> {
  const { tasks, tasksPerStep, maxStaleness, lookAhead, first, last, clock } = options
  const pipeline = openRollPipeline(parts)
  const { perJob } = pipeline
  const seats = learningSeatsOf(parts)
  const running = new Map<GroupId, Begun<Data>>()
  const order = makeOrder(tasks, options)
  let submitted = 0
  let refused = 0
  let done = 0

  function submit(): void {
    const { id, step, ...placed } = order.next(
      new Set([...running.values()].map(each => each.task.id)),
    )
    const entry: Begun<Data> = placed
    for (const seat of seats) running.set(seatGroup(id, seat), entry)
    submitted++
    const onBegin = (): void => {
      entry.born ??= { done, at: clock() }
    }
    pipeline.submit({ ...placed, id, step, onBegin })
  }
  function fill(): void {
    const steps = Math.min(pace.ahead(lookAhead) + done + 1, last - first + 1)
    while (submitted - refused / perJob < steps * tasksPerStep) submit()
  }
  return {
    perJob,
    get ready() {
      return pipeline.ready
    },
    get pending() {
      return pipeline.pending
    },
    fill,
    advance() {
      done++
      fill()
    },
    async next() {
      const group = await pipeline.next()
      const entry = running.get(group.id)!
      running.delete(group.id)
      if (entry.born) pace.rolled(clock() - entry.born.at)
      return { group, begun: entry }
    },
    isDue: () => [...running.values()].some(({ born }) => born && born.done + maxStaleness <= done),
    refuse(isReplaced) {
      refused++
      if (isReplaced) fill()
    },
    repeat: order.repeat,
    // A group has an entry for every seat.
    memory: complete => order.memory([...complete, ...running.values()]),
    [Symbol.asyncDispose]: () => pipeline[Symbol.asyncDispose](),
  }
}
