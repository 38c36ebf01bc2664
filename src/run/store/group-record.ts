import type { Stretch, TrajectoryImportance } from '../../base/core/credit.ts'
import type { Task } from '../../base/core/environment.ts'
import type { Dropped, Group, Weighted } from '../../base/core/group.ts'
import type { GroupId, TrajectoryId } from '../../base/core/ids.ts'
import type { Outcome } from '../../base/core/outcome.ts'
import type { Reward } from '../../base/core/reward.ts'

/** A finished group as stored in the journal; its trees are in frames of their own. */
export interface GroupRecord {
  readonly id: GroupId
  /** The place of its task in the run's order, for exports. */
  readonly order: number
  readonly seat?: string
  readonly step?: number
  readonly task: Task
  readonly members: readonly MemberRecord[]
  readonly unscored: readonly { readonly trajectory: TrajectoryId; readonly outcome: Outcome }[]
}

/** A member of such a group: its trajectory by id, with its reward and credit. */
export interface MemberRecord {
  readonly trajectory: TrajectoryId
  readonly reward: Reward
  readonly dropped: Dropped | null
  readonly advantage: number | null
  readonly weight: number
  readonly turns?: readonly number[]
  readonly stretches?: readonly Stretch[]
  readonly importance?: ImportanceRecord
}

/** Importance weights that a run does not compute anew: those of a file that was imported. */
export interface ImportanceRecord extends Pick<TrajectoryImportance, 'factor' | 'ratios'> {
  readonly nodes: readonly (readonly [node: number, weights: readonly number[]])[]
}

function importanceRecord({ nodes, ...rest }: TrajectoryImportance): ImportanceRecord {
  return { ...rest, nodes: [...nodes].map(([node, weights]) => [node, [...weights]]) }
}

/** The reward and the credit of a member, as a record holds them. */
export function recordedCredit(record: MemberRecord): Omit<Weighted, 'tree' | 'trajectory'> {
  const { trajectory: _, importance, ...credit } = record
  if (!importance) return credit
  const { nodes, ...rest } = importance
  const weights = new Map(nodes.map(([node, list]) => [node, Float64Array.from(list)]))
  return { ...credit, importance: { ...rest, nodes: weights } }
}

/** A group without its trees, as the journal has it. */
export function groupRecord(group: Group, task: Task, order: number): GroupRecord {
  return {
    id: group.id,
    order,
    ...(group.seat !== undefined && { seat: group.seat }),
    ...(group.step !== undefined && { step: group.step }),
    task,
    members: group.members.map(({ trajectory, reward, dropped, advantage, weight, ...more }) => ({
      trajectory: trajectory.id,
      reward,
      dropped,
      advantage,
      weight,
      ...(more.turns && { turns: more.turns }),
      ...(more.stretches && { stretches: more.stretches }),
      ...(more.importance && { importance: importanceRecord(more.importance) }),
    })),
    unscored: group.unscored.map(({ trajectory, outcome }) => ({
      trajectory: trajectory.id,
      outcome,
    })),
  }
}
