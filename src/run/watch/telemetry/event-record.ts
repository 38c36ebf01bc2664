import { type Group, reasonsUnscored } from '../../../base/core/group.ts'
import { describeOutcome } from '../../../base/core/outcome.ts'
import { jsonWithoutSecrets } from '../../../base/core/process/secrets.ts'
import type { Tree } from '../../../base/core/tree.ts'
import type {
  ConcurrencyChanged,
  CurvesDrawn,
  EarlyStop,
  LanesMoved,
  Retried,
  RunEvent,
  RunStart,
  SampleEnd,
  ScoreEnd,
  ServerBack,
  StepEnd,
  Warned,
  WorkersSeen,
} from '../events.ts'

/** One line of `events.jsonl`: an event as plain JSON, with its time. */
export type EventRecord = { readonly time: string } & (
  | RunStart
  | { readonly kind: 'attempt-start'; readonly task: string; readonly member: number }
  | SampleEnd
  | Retried
  | ServerBack
  | TreeRecord
  | ScoreEnd
  | GroupRecord
  | StepEnd
  | CurvesDrawn
  | Warned
  | ConcurrencyChanged
  | EarlyStop
  | WorkersSeen
  | { readonly kind: 'budget-spent'; readonly of: string; readonly message: string }
  | { readonly kind: 'run-end'; readonly status: string; readonly reason?: string }
)

/** A tree that ended, in numbers. */
export interface TreeRecord {
  readonly kind: 'tree-end'
  readonly tree: string
  readonly task: string
  readonly outcomes: readonly string[]
  readonly turns: number
  readonly sampled: number
  readonly prompt: number
  readonly calls: number
  readonly problems: number
  readonly seconds: Readonly<Record<'policy' | 'tools' | 'environment' | 'reward', number>>
}

/** A group that is complete, in numbers. */
export interface GroupRecord {
  readonly kind: 'group-end'
  readonly group: string
  readonly task: string
  readonly step?: number
  readonly rewards: readonly number[]
  readonly dropped: number
  readonly unscored: number
  /** Why, each reason once. */
  readonly reasons?: readonly { readonly reason: string; readonly count: number }[]
}

/** Events that can be written; those with lanes are for live observers only. */
export type WrittenEvent = Exclude<RunEvent, LanesMoved>

/** An event as the line that is written of it, with its end. */
export function toEventLine(event: WrittenEvent, time: string): string {
  if (!('line' in event) || event.line === undefined) {
    return `${jsonWithoutSecrets(toEventRecord(event, time))}\n`
  }
  return timedLine(event.line, time)
}

/** A line that lacks its time, with it and with its end. */
export function timedLine(line: string, time: string): string {
  return `{"time":"${time}",${line.slice(1)}\n`
}

/** What is written of a tree that ended, but for the time. */
export function toTreeLine(tree: Tree): string {
  return jsonWithoutSecrets(treeRecord(tree))
}

/** What is written of a group that is complete, but for the time. */
export function toGroupLine(group: Group): string {
  return jsonWithoutSecrets(groupRecord(group))
}

/** An event as it is written. */
function toEventRecord(event: WrittenEvent, time: string): EventRecord {
  switch (event.kind) {
    case 'tree-end':
      return { time, ...treeRecord(event.tree) }
    case 'group-end':
      return { time, ...groupRecord(event.group) }
    case 'run-end': {
      const { kind, status, reason } = event
      return { time, kind, status, ...(reason !== undefined && { reason }) }
    }
    default:
      return { time, ...event }
  }
}

/** A tree in numbers. */
function treeRecord({ id, task, trajectories }: Tree): TreeRecord {
  const seconds = { policy: 0, tools: 0, environment: 0, reward: 0 }
  const record = { turns: 0, sampled: 0, prompt: 0, calls: 0, problems: 0 }
  for (const { turns, usage, calls, volatile } of trajectories) {
    record.turns += turns.length
    record.sampled += usage.sampled
    record.prompt += usage.prompt
    record.calls += calls.length
    for (const { problem } of calls) if (problem !== undefined) record.problems++
    seconds.policy += volatile.seconds.policy
    seconds.tools += volatile.seconds.tools
    seconds.environment += volatile.seconds.environment
    seconds.reward += volatile.seconds.reward
  }
  const outcomes = trajectories.map(({ outcome }) => describeOutcome(outcome).slice(0, 300))
  return { kind: 'tree-end', tree: id, task, outcomes, ...record, seconds }
}

function groupRecord({ id, task, step, members, unscored }: Group): GroupRecord {
  const reasons = reasonsUnscored({ unscored }).map(({ reason, count }) => ({
    reason: reason.slice(0, 300),
    count,
  }))
  return {
    kind: 'group-end',
    group: id,
    task,
    ...(step !== undefined && { step }),
    rewards: members.map(({ reward }) => reward.total),
    dropped: members.filter(({ dropped }) => dropped !== null).length,
    unscored: unscored.length,
    ...(reasons.length > 0 && { reasons }),
  }
}
