import { type Group, isUseful } from '../../base/core/group.ts'
import { type GroupId, seatGroup, type TaskId } from '../../base/core/ids.ts'
import { type OnUpdate, openWeightsGate } from '../../run/run/pause.ts'
import { seatsOf } from '../../run/run/pipeline.ts'
import { openRollPipeline, type RollParts } from '../../run/run/roll-groups.ts'
import type { TaskStream } from '../../run/tasks/task-stream.ts'
import { ageOfGroup, type VersionHistory } from './staleness.ts'

/** How old a group may be, and by what its age is told. */
interface GroupAge {
  /** How many steps old training data may be. */
  readonly maxStaleness: number
  readonly history: VersionHistory
}

/** What a step learns from, whoever makes it. */
export interface FedOptions extends GroupAge {
  /** Groups that a step learns from. */
  readonly tasksPerStep: number
  readonly onUpdate: OnUpdate
}

/** Opens a feed of groups that others make, such as agents behind a gateway. */
export type OpenFeed = (parts: RollParts, options: FedOptions) => Promise<Feed>

/** How far rolling may run ahead of learning. */
export interface FeedOptions<Data> extends FedOptions {
  readonly tasks: TaskStream<Data>
  /** Extra groups per group of a step, for those that filters empty or that grow too old. */
  readonly refill: number
  /** The first step that is fed, and the last. */
  readonly first: number
  readonly last: number
}

/** What a step learns from. */
export interface Fed {
  readonly groups: readonly Group[]
  /** Groups that were rolled for it in vain: they had grown too old, or filters had emptied them. */
  readonly refused: readonly Group[]
  /** How many of those had grown too old. */
  readonly stale: number
}

/** Rolls groups while others are learned from; a slow one comes out with a later step. */
export interface Feed extends AsyncDisposable {
  /** The first groups to be complete, as many as a step wants, in the order of their tasks. */
  take(): Promise<Fed>
  /** Runs what ends a step by changing the weights, while nothing is sampled from them. */
  change<T>(work: () => Promise<T>): Promise<T>
}

/**
 * Opens a feed. Groups are begun while fewer than (staleness + steps done + 1) × groups per step were
 * accepted or are running (AReaL's rule), so that training data is at most that many steps old. Groups
 * that grew older anyway are refused and counted. No group is begun after the last step has enough.
 */
export function openFeed<Data>(parts: RollParts<Data>, options: FeedOptions<Data>): Feed {
  const { tasks, tasksPerStep, maxStaleness, first, last } = options
  const gate = openWeightsGate(options.onUpdate)
  const instruments = [gate.instrument, ...(parts.instruments ?? [])]
  const pipeline = openRollPipeline({ ...parts, instruments })
  const seats = seatsOf(parts).filter(seat => !parts.seats?.has(seat))
  const running = new Map<GroupId, { readonly task: TaskId; readonly order: number }>()
  let begun = 0
  let refused = 0
  let done = 0

  function submit(): void {
    const order = (first - 1) * tasksPerStep + begun
    const step = first + Math.floor(begun / tasksPerStep)
    const task = tasks.at(order, new Set([...running.values()].map(each => each.task)))
    const id = `${step}/${begun % tasksPerStep}/${task.id}` as GroupId
    for (const seat of seats) running.set(seatGroup(id, seat), { task: task.id, order })
    begun++
    pipeline.submit({ id, task, order, step })
  }
  const { perJob } = pipeline
  function fill(): void {
    const steps = Math.min(maxStaleness + done + 1, last - first + 1)
    while (begun - refused / perJob < steps * tasksPerStep) submit()
  }

  return {
    async change(work) {
      const changed = await gate.change(work)
      done++
      // Not only when the next step asks for groups: until then, the cores would have less to do.
      fill()
      return changed
    },
    async take() {
      const groups: { readonly group: Group; readonly order: number }[] = []
      const vain: Group[] = []
      let stale = 0
      fill()
      while (groups.length < tasksPerStep * perJob && pipeline.pending > 0) {
        const group = await pipeline.next()
        const { order } = running.get(group.id)!
        running.delete(group.id)
        const refusal = refusalOf(group, options)
        if (!refusal) {
          groups.push({ group, order })
          continue
        }
        if (refusal === 'stale') stale++
        vain.push(group)
        refused++
        if (vain.length <= tasksPerStep * perJob * options.refill) fill()
      }
      // In the order of their tasks, so that equal groups are learned to equal bits.
      const inOrder = groups.toSorted((a, b) => a.order - b.order).map(({ group }) => group)
      return { groups: inOrder, refused: vain, stale }
    },
    [Symbol.asyncDispose]: () => pipeline[Symbol.asyncDispose](),
  }
}

/** Why nothing can be learned from a group, if so: it is too old, or filters emptied it. */
export function refusalOf(
  group: Group,
  { history, maxStaleness }: GroupAge,
): 'stale' | 'emptied' | undefined {
  if (ageOfGroup(group, history) > maxStaleness) return 'stale'
  return isUseful(group) ? undefined : 'emptied'
}
