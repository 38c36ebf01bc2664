import type { Task } from '../core/environment.ts'
import type { Group, Scored, Unscored } from '../core/group.ts'
import { type GroupId, type TreeId, treeId } from '../core/ids.ts'
import { openLane } from '../core/lane.ts'
import type { Tree } from '../core/tree.ts'
import type { Attempt, RolloutContext } from '../rollout/attempt.ts'
import { scoreTree } from '../rollout/score.ts'
import type { Listen } from './events.ts'
import { type GatherOptions, gather } from './gather.ts'
import type { RunWriter } from './store.ts'

/** Rolls one attempt: a chain, a search tree, steps. A failure is in the tree, not thrown. */
export type Strategy = (context: RolloutContext, attempt: Attempt) => Promise<Tree>

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

/** Rolls groups side by side; each comes out as soon as it is complete, slow ones delay nobody. */
export interface Pipeline {
  submit(job: Job): void
  /** The next group to be complete; rejects when the run is aborted or its store fails. */
  next(): Promise<Group>
  /** Groups that were submitted and not taken yet. */
  readonly pending: number
}

/** Opens a pipeline; nothing runs before a job is submitted. */
export function openPipeline(options: PipelineOptions): Pipeline {
  const lane = openLane('rollouts', options.rollouts)
  const ready: Promise<Group>[] = []
  const waiting: ((group: Promise<Group>) => void)[] = []
  let pending = 0

  const deliver = (group: Promise<Group>): void => {
    const taker = waiting.shift()
    if (taker) taker(group)
    else ready.push(group)
  }

  return {
    get pending() {
      return pending
    },
    submit(job) {
      pending++
      const group = rollGroup(job, options, lane)
      // Delivered once settled, so that whoever takes it never waits for a slow one.
      group.then(
        () => deliver(group),
        () => deliver(group),
      )
    },
    async next() {
      if (pending === 0) throw new Error('nothing was submitted that could be taken')
      try {
        return await (ready.shift() ?? new Promise<Group>(resolve => waiting.push(resolve)))
      } finally {
        pending--
      }
    },
  }
}

type RolloutsLane = ReturnType<typeof openLane>

async function rollGroup(job: Job, options: PipelineOptions, lane: RolloutsLane): Promise<Group> {
  const members = await Promise.all(
    Array.from({ length: options.group }, (_, member) =>
      rollMember(job, member, { options, lane }),
    ),
  )
  const group = gather(job, members.flat(), options)
  await options.writer?.writeGroup(group, job.task, job.order)
  options.listen?.({ kind: 'group-end', group })
  return group
}

async function rollMember(
  job: Job,
  member: number,
  { options, lane }: { options: PipelineOptions; lane: RolloutsLane },
): Promise<readonly (Scored | Unscored)[]> {
  const { context, reward, signal } = options
  const tree =
    options.known?.get(treeId(job.id, member)) ??
    (await lane.run({ signal }, () => rollFresh(job, member, options)))
  return await scoreTree(tree, job.task, { reward, lanes: context.lanes, signal })
}

async function rollFresh(job: Job, member: number, options: PipelineOptions): Promise<Tree> {
  const { context, strategy, seed, signal, writer, listen } = options
  listen?.({ kind: 'attempt-start', task: job.task.id, member })
  const tree = await strategy(context, { task: job.task, group: job.id, member, seed, signal })
  // An attempt that the run itself stopped is not finished: a resumed run rolls it again.
  signal.throwIfAborted()
  await writer?.writeTree(tree)
  listen?.({ kind: 'tree-end', tree })
  return tree
}
