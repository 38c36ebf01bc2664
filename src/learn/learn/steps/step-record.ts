import type { Group } from '../../../base/core/group.ts'
import type { TrainerStep } from '../../../base/core/trainer.ts'
import { attemptMeans, succeeds } from '../../../base/math/attempts.ts'
import { mean } from '../../../base/math/statistics.ts'
import { costOfTree } from '../../../run/store/journal-index.ts'
import type { EnvironmentOf } from '../../../run/tasks/mixed-tasks.ts'
import type { TaskOutcome } from '../../../run/tasks/sample-tasks.ts'
import type { RolledAhead } from '../../../run/watch/events.ts'
import type { TrainingPlan } from '../training-plan.ts'
import type { Ledger } from './ledger.ts'
import type { Staleness } from './staleness.ts'

/** One step as it is written to the run's metrics. */
export interface StepRecord {
  readonly step: number
  /** The version of the weights after it. */
  readonly version: number
  readonly reward: number
  /** The mean reward seat by seat, if several learn. */
  readonly rewardBySeat?: Readonly<Record<string, number>>
  /** Environment by environment, if there are several. */
  readonly byEnvironment?: Readonly<
    Record<string, Pick<StepRecord, 'reward' | 'success' | 'groups'>>
  >
  /** Solved share of the step's attempts. */
  readonly success: number
  /** Examples that were shown before each task. */
  readonly shots?: number
  readonly groups: number
  /** Members that filters dropped. */
  readonly dropped: number
  readonly unscored: number
  readonly sampledTokens: number
  /** Tokens that requests began with, cached ones too. */
  readonly promptTokens: number
  readonly turns: number
  /** How many steps old the training data is. */
  readonly staleness: Staleness
  /** Groups that had grown too old to learn from. */
  readonly stale: number
  /** Whether it was learned from a stored run, which other weights sampled. */
  readonly offPolicy?: true
  /** How rolling was ahead, if it may be. */
  readonly ahead?: RolledAhead
  /** What became of all tokens since the run began. */
  readonly ledger: Ledger
  readonly seconds: { readonly roll: number; readonly learn: number }
  readonly metrics: TrainerStep['metrics']
  /** Other output of the trainer, such as the tokens that changed most. */
  readonly more: Readonly<Record<string, unknown>>
}

/** How the attempts at a group's task went. */
export function outcomeOf({ task, members }: Group, successAt: number): TaskOutcome {
  const attempts = attemptMeans(
    members.map(({ tree, trajectory, reward }) => ({
      tree,
      share: trajectory.share,
      value: Number(succeeds(reward.total, successAt)),
    })),
  )
  return { task, attempts: attempts.length, success: attempts.length === 0 ? 0 : mean(attempts) }
}

/** The numbers of a step under the names of their curves. */
export function curvesOf({
  metrics,
  seconds,
  staleness: _,
  ahead,
  byEnvironment = {},
  more,
  ...record
}: StepRecord) {
  const named: Readonly<Record<string, unknown>> = {
    ...record,
    ...metrics,
    ...more,
    ...(ahead && { 'ahead.held': ahead.held, 'ahead.slowest': ahead.slowest }),
    ...Object.fromEntries(
      Object.entries(byEnvironment).flatMap(([name, { reward, success }]) => [
        [`reward/${name}`, reward],
        [`success/${name}`, success],
      ]),
    ),
    'seconds.roll': seconds.roll,
    'seconds.learn': seconds.learn,
  }
  return Object.fromEntries(
    Object.entries(named).flatMap(([name, value]) =>
      typeof value === 'number' && Number.isFinite(value) ? [[`train/${name}`, value]] : [],
    ),
  )
}

export function countGroups(groups: readonly Group[], successAt: number) {
  const members = groups.flatMap(group => group.members)
  const count = Math.max(1, members.length)
  const sum = (value: (member: (typeof members)[number]) => number): number =>
    members.reduce((total, member) => total + value(member), 0)
  const unscored = groups.flatMap(group => group.unscored)
  const trees = new Set([...members, ...unscored].map(({ tree }) => tree))
  const costs = [...trees].map(costOfTree)
  return {
    reward: sum(({ reward }) => reward.total) / count,
    ...rewardBySeat(groups),
    success: sum(({ reward }) => Number(succeeds(reward.total, successAt))) / count,
    groups: groups.length,
    dropped: members.filter(member => member.dropped !== null).length,
    unscored: unscored.length,
    // What several endings of a tree share was sampled once.
    sampledTokens: costs.reduce((total, { sampled }) => total + sampled, 0),
    promptTokens: costs.reduce((total, { prompt }) => total + prompt, 0),
    turns: sum(({ trajectory }) => trajectory.turns.length) / count,
  }
}

/** Reward and success of a step environment by environment. */
export function stepByEnvironment(
  groups: readonly Group[],
  { environmentOf, successAt }: Pick<TrainingPlan, 'environmentOf' | 'successAt'>,
): Pick<StepRecord, 'byEnvironment'> {
  if (!environmentOf) return {}
  const counted = [...partition(groups, environmentOf)].map(([name, own]) => {
    const { reward, success, groups: count } = countGroups(own, successAt)
    return [name, { reward, success, groups: count }] as const
  })
  return { byEnvironment: Object.fromEntries(counted) }
}

/** Groups by whose task they are of; all of them as one if there is one environment. */
export function partition(
  groups: readonly Group[],
  environmentOf: EnvironmentOf = () => undefined,
): ReadonlyMap<string, readonly Group[]> {
  const parts = new Map<string, Group[]>()
  for (const group of groups) {
    const name = environmentOf(group.task) ?? ''
    parts.set(name, [...(parts.get(name) ?? []), group])
  }
  return parts
}

function rewardBySeat(groups: readonly Group[]): Pick<StepRecord, 'rewardBySeat'> {
  const seats = [...new Set(groups.flatMap(({ seat }) => seat ?? []))].sort()
  if (seats.length < 2) return {}
  const rewardsOf = (seat: string): readonly number[] =>
    groups
      .filter(group => group.seat === seat)
      .flatMap(group => group.members.map(({ reward }) => reward.total))
  return { rewardBySeat: Object.fromEntries(seats.map(seat => [seat, mean(rewardsOf(seat))])) }
}
