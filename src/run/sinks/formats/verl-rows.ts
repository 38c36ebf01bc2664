import { grpoAdvantages } from '../../../base/math/advantages/grpo.ts'
import { mean } from '../../../base/math/statistics.ts'
import { isTrained, isUnscored, type MemberRow } from '../../rows/row-record.ts'
import type { LossReport } from '../lost.ts'

/** What verl's own comparison makes of runs whose trajectories have several rows. */
export interface RowCount {
  add(rows: readonly MemberRow[]): void
  /** Says it, if there is something to say. */
  tell(lost: LossReport): void
}

/**
 * Counts rows as verl's grpo does: each as an attempt of its own, so that a trajectory of three rows is three
 * attempts in the mean and the deviation of its `uid`.
 */
export function makeRowCount(): RowCount {
  const differences: number[] = []
  let several = 0
  return {
    add(rows) {
      const scored = rows.filter(({ member }) => !isUnscored(member))
      const trajectories = new Map(scored.map(each => [each.row.trajectory.id, rewardOf(each)]))
      if (trajectories.size === scored.length) return
      const byRow = compared(scored.map(rewardOf))
      const byTrajectory = compared([...trajectories.values()])
      const right = new Map([...trajectories.keys()].map((id, index) => [id, byTrajectory[index]!]))
      scored.forEach(({ row, member }, index) => {
        if (row.count > 1) several++
        if (isTrained(member))
          differences.push(Math.abs(byRow[index]! - right.get(row.trajectory.id)!))
      })
    },
    tell(lost) {
      if (differences.length === 0) return
      const most = Math.max(...differences)
      lost.note(
        `${several} rows are of trajectories that have several, and verl's grpo by uid counts each as an attempt: its ` +
          `advantages are ${mean(differences).toFixed(3)} off on average, ${most.toFixed(3)} at most; ` +
          'adv_estimator=espalier counts every attempt once',
      )
    },
  }
}

function rewardOf({ member }: MemberRow): number {
  return isUnscored(member) ? 0 : member.reward.total
}

function compared(rewards: readonly number[]): readonly number[] {
  const attempts = rewards.map((reward, trajectory) => ({ group: 0, trajectory, reward }))
  return grpoAdvantages(attempts, { single: 'raw' }).map(advantage => advantage ?? 0)
}
