import { leafWeight } from '../core/credit.ts'
import type { Group, Weighted } from '../core/group.ts'
import type { LeafWeighting } from '../math/credit.ts'
import { type DeviationKind, weightedDeviation } from '../math/statistics.ts'
import { comparedReward } from './compared.ts'

/** How advantages are scaled by the spread of a whole batch, once all its groups are there. */
export interface BatchScale {
  readonly deviation: DeviationKind
  /** Added to the spread. */
  readonly epsilon: number
}

/** What a group adds to the spread of its batch. */
export interface ComparedRewards {
  readonly rewards: readonly number[]
  readonly weights: readonly number[]
}

/** The rewards of a group that take part in comparisons. */
export function comparedRewards(group: Group, weighting: LeafWeighting): ComparedRewards {
  const compared = group.members.filter(isCompared)
  return {
    rewards: compared.map(({ reward }) => reward.total),
    weights: compared.map(({ trajectory }) => leafWeight(trajectory, weighting)),
  }
}

/** The spread of all rewards of a batch. */
export function batchSpread(
  groups: readonly ComparedRewards[],
  { deviation, epsilon }: BatchScale,
): number {
  const weights = groups.flatMap(group => group.weights)
  const rewards = groups.flatMap(group => group.rewards)
  return weightedDeviation(rewards, { weights, kind: deviation }) + epsilon || 1
}

/** A group with its advantages divided by the spread of its batch; unchanged if it compared nothing. */
export function scaleGroup(group: Group, spread: number): Group {
  if (group.members.filter(isCompared).length < 2) return group
  return { ...group, members: group.members.map(member => scaleMember(member, spread)) }
}

const isCompared = (member: Weighted): boolean => comparedReward(member) !== undefined

function scaleMember(member: Weighted, spread: number): Weighted {
  const { advantage } = member
  return advantage === null ? member : { ...member, advantage: advantage / spread }
}
