import type { Call } from './call.ts'
import { carried } from './carried.ts'
import type { Stretch, TrajectoryImportance } from './credit.ts'
import { generalised } from './failure.ts'
import type { GroupId, TaskId, TrajectoryId } from './ids.ts'
import { type Aborted, describeUnscored, type Failed } from './outcome.ts'
import type { Reward } from './reward.ts'
import type { Gradable, Trajectory } from './trajectory.ts'
import type { Tree } from './tree.ts'

/** A trajectory with its reward. */
export interface Scored {
  readonly tree: Tree
  readonly trajectory: Gradable
  readonly reward: Reward
}

/** A trajectory that never got a reward: it failed or was aborted, or its reward did. */
export interface Unscored {
  readonly tree: Tree
  readonly trajectory: Trajectory
  readonly outcome: Failed | Aborted
}

/** Why a filter dropped a trajectory, and from what. */
export interface Dropped {
  readonly filter: string
  readonly reason: string
  /** Whether it also leaves the statistics that its siblings are compared with. */
  readonly from: 'loss' | 'loss-and-statistics'
}

/** The filter that keeps held-out attempts out of every loss, in the journal of a training run. */
export const heldOutFilter = 'evaluation'

/** A scored trajectory that filters have judged. */
export interface Judged extends Scored {
  readonly dropped: Dropped | null
}

/** A judged trajectory with its credit: the advantage and the weight its tokens are trained with. */
export interface Weighted extends Judged {
  /** `null` if it was dropped from the statistics too, or could not be compared. */
  readonly advantage: number | null
  readonly weight: number
  /** Advantages turn by turn, if the estimator gives them. */
  readonly turns?: readonly number[]
  /** Advantages of parts of turns, if the estimator gives them. */
  readonly stretches?: readonly Stretch[]
  /** Importance weights, if tokens are weighed for having been sampled from other weights than those that learn. */
  readonly importance?: TrajectoryImportance
}

/** Attempts at the same task, compared with each other. */
export interface Group<Member extends Scored = Weighted> {
  readonly id: GroupId
  readonly task: TaskId
  /** Whose attempts these are, if attempts have several seats. */
  readonly seat?: string
  /** The step of a training run that rolled it. */
  readonly step?: number
  readonly members: readonly Member[]
  /** What could not be scored, with the reason in its outcome; never lost, never 0. */
  readonly unscored: readonly Unscored[]
}

/** A filter's verdict on a group: which trajectories to drop, each with a reason. */
export type Verdicts = ReadonlyMap<TrajectoryId, Omit<Dropped, 'filter'>>

/** Keeps or drops trajectories; what it drops has a reason. */
export interface Filter {
  readonly name: string
  /** Whether it judges by the moment too, such as the version of the weights, and so only in one place. @default false */
  readonly ofTheMoment?: boolean
  judge(group: Group<Scored>): Verdicts
}

/** Where weighted groups go. */
export interface Sink extends AsyncDisposable {
  readonly name: string
  write(group: Group, call: Call): Promise<void>
}

/**
 * What is asked of every group that is complete. Whoever made a group can tell it, so that its members are
 * only read if something else is asked.
 */
export interface GroupGlance {
  /** The rewards of its members, in their order. */
  readonly rewards: readonly number[]
  /** Members that filters dropped. */
  readonly dropped: number
  readonly unscored: number
  /** Whether anything of it would be trained on. */
  readonly isUseful: boolean
}

const glances = carried(lookInto)

/** A group of which this is known already. */
export const withGlance = glances.with

/** What is known of a group, or found out now. */
export const glanceAt = glances.of

function lookInto(group: Group): GroupGlance {
  const { members, unscored } = group
  return {
    rewards: members.map(({ reward }) => reward.total),
    dropped: members.filter(({ dropped }) => dropped !== null).length,
    unscored: unscored.length,
    isUseful: isUseful(group),
  }
}

/** Whether anything of a group would be trained on. */
export function isUseful(group: {
  readonly members: readonly Pick<Weighted, 'dropped' | 'advantage'>[]
}): boolean {
  return group.members.some(({ dropped, advantage }) => dropped === null && advantage !== null)
}

/** Why attempts of a group have no reward: each reason once, with its count, the most frequent first. */
export function reasonsUnscored({
  unscored,
}: Pick<Group, 'unscored'>): readonly { readonly reason: string; readonly count: number }[] {
  const counts = new Map<string, { readonly reason: string; readonly count: number }>()
  for (const { trajectory, outcome } of unscored) {
    const reason = describeUnscored(trajectory.outcome, outcome)
    // Those that differ in their seconds or ids are told as the first of them.
    const known = counts.get(generalised(reason)) ?? { reason, count: 0 }
    counts.set(generalised(reason), { reason: known.reason, count: known.count + 1 })
  }
  return [...counts.values()].sort((one, other) => other.count - one.count)
}

/** Whether a group of a training run was rolled to measure it, and not to learn from. */
export function isHeldOut({ id, step }: Pick<Group, 'id' | 'step'>): boolean {
  return step !== undefined && id.startsWith(`evaluation-${step}/`)
}

/** The name of the filter that keeps seats from being trained. */
export const seatFilter = 'seat'

/** Whether somebody who does not learn played this group's seat: it says nothing about the policy. */
export function isOfAnother(group: Group): boolean {
  return glanceAt(group).dropped > 0 && group.members[0]?.dropped?.filter === seatFilter
}
