import type { Scored, Unscored } from '../../../base/core/group.ts'
import type { TrajectoryId } from '../../../base/core/ids.ts'
import type { Reward } from '../../../base/core/reward.ts'
import type { Gradable } from '../../../base/core/trajectory.ts'
import type { Tree } from '../../../base/core/tree.ts'
import { isScored } from '../../../engine/rollout/score.ts'

/** A trajectory's reward, or why it has none; its tree is sent beside it. */
export type ScoreRecord =
  | { readonly trajectory: TrajectoryId; readonly reward: Reward }
  | { readonly trajectory: TrajectoryId; readonly outcome: Unscored['outcome'] }

/** A member without its tree. */
export function toScoreRecord(member: Scored | Unscored): ScoreRecord {
  const { id } = member.trajectory
  return isScored(member)
    ? { trajectory: id, reward: member.reward }
    : { trajectory: id, outcome: member.outcome }
}

/** The member that a record describes, with its tree. */
export function toMember(score: ScoreRecord, trees: readonly Tree[]): Scored | Unscored {
  for (const tree of trees) {
    const trajectory = tree.trajectories.find(({ id }) => id === score.trajectory)
    if (!trajectory) continue
    return 'reward' in score
      ? { tree, trajectory: trajectory as Gradable, reward: score.reward }
      : { tree, trajectory, outcome: score.outcome }
  }
  throw new Error(`${score.trajectory} is scored but in no tree`)
}
