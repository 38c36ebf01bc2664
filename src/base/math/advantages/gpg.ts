import {
  type Advantages,
  gatherGroups,
  type Member,
  meanReward,
  type RewardedTrajectory,
  type SinglePolicy,
  toEntries,
} from '../advantage.ts'
import { checkNumber, checkWord, readOptions } from '../options.ts'

/** GPG's normaliser, and the advantage of a group of one. */
export interface GpgAdvantageSettings {
  /** F_norm: every advantage is divided by it. */
  readonly norm: number
  /** In verl α is rounded to float32 (`single`): torch divides two integers to its default type. */
  readonly alpha: 'double' | 'single'
  readonly single: SinglePolicy
}

/**
 * GPG: α (r − mean) / F_norm, with α the batch's trajectories over those whose reward is not 0, so that
 * many empty rewards do not shrink the step (Chu et al. 2025, arXiv 2504.02546). Without any reward
 * that is not 0, α is 1.
 */
export function gpgAdvantages(
  entries: readonly RewardedTrajectory[],
  options: Partial<GpgAdvantageSettings> = {},
): Advantages {
  const defaults: GpgAdvantageSettings = { norm: 1, alpha: 'double', single: 'zero' }
  const settings = readOptions('The gpg advantage', defaults, options)
  const { norm, single } = settings
  checkNumber('norm', norm, { low: Number.MIN_VALUE })
  checkWord('single', single, ['zero', 'raw'])
  checkWord('alpha', settings.alpha, ['double', 'single'])
  const groups = gatherGroups(entries)
  const members = groups.flat()
  const rewarded = totalWeight(members.filter(member => member.reward !== 0))
  const ratio = rewarded === 0 ? 1 : totalWeight(members) / rewarded
  const alpha = settings.alpha === 'single' ? Math.fround(ratio) : ratio
  return toEntries(entries, groups, group => {
    if (group.length === 1 && single === 'zero') return () => 0
    const centre = group.length === 1 ? 0 : meanReward(group)
    return ({ reward }) => (alpha * (reward - centre)) / norm
  })
}

function totalWeight(members: readonly Member[]): number {
  return members.reduce((sum, member) => sum + member.weight, 0)
}
