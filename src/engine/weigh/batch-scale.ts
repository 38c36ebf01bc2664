import { leafWeight } from '../../base/core/credit.ts'
import type { Group, Judged, Weighted } from '../../base/core/group.ts'
import type { LeafWeighting } from '../../base/math/credit.ts'
import { type DeviationKind, weightedDeviation } from '../../base/math/statistics.ts'
import { type Compared, comparedReward } from './compared.ts'
import type { Estimate } from './estimate.ts'

/** A comparison that is scaled by the spread of a whole training step, once all its groups are there. */
export interface BatchScale {
  /** What a group adds to the spread of its step: the rewards that it is compared by. */
  rewardsOf(group: Group<Judged>, weighting: LeafWeighting): ComparedRewards
  /** The spread of all rewards of a step. */
  spreadOf(groups: readonly ComparedRewards[]): number
  /** The comparison within a group, divided by the spread of its step. */
  over(spread: number): Estimate
}

/** The rewards of a group that take part in comparisons. */
export interface ComparedRewards {
  readonly rewards: readonly number[]
  readonly weights: readonly number[]
}

/** The scale of a comparison that centres rewards; it changes no group that compared nothing. */
export function batchScale(
  centre: Estimate,
  { deviation, epsilon }: { readonly deviation: DeviationKind; readonly epsilon: number },
): BatchScale {
  return {
    rewardsOf: comparedRewards,
    spreadOf(groups) {
      const weights = groups.flatMap(group => group.weights)
      const rewards = groups.flatMap(group => group.rewards)
      return weightedDeviation(rewards, { weights, kind: deviation }) + epsilon || 1
    },
    over: spread => (group, weighting) => {
      const centred = centre(group, weighting)
      const isAlone = group.members.filter(isCompared).length < 2
      return isAlone ? centred : centred.map(compared => dividedBy(compared, spread))
    },
  }
}

/** A group compared anew: everything else that is known of its members stays. */
export function comparedAnew(group: Group, estimate: Estimate, weighting: LeafWeighting): Group {
  const compared = estimate(group, weighting)
  const members = group.members.map((member, index) => ({ ...member, ...compared[index]! }))
  return { ...group, members }
}

function comparedRewards(group: Group<Judged>, weighting: LeafWeighting): ComparedRewards {
  const compared = group.members.filter(isCompared)
  return {
    rewards: compared.map(({ reward }) => reward.total),
    weights: compared.map(({ trajectory }) => leafWeight(trajectory, weighting)),
  }
}

const isCompared = (member: Judged): boolean => comparedReward(member) !== undefined

function dividedBy({ advantage }: Compared, spread: number): Pick<Weighted, 'advantage'> {
  return { advantage: advantage === null ? null : advantage / spread }
}
