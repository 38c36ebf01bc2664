import type { Judged, Weighted } from '../../base/core/group.ts'

/** What comparing a group gives each member. */
export type Compared = Pick<Weighted, 'advantage' | 'turns' | 'stretches'>

/** The reward that a member is compared by; none if it left the statistics. */
export function comparedReward({ dropped, reward }: Judged): number | undefined {
  return dropped?.from === 'loss-and-statistics' ? undefined : reward.total
}
