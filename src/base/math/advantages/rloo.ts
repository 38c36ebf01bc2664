import {
  type Advantages,
  gatherGroups,
  type RewardedTrajectory,
  type SinglePolicy,
  toEntries,
} from '../advantage.ts'
import { checkWord, readOptions } from '../options.ts'
import { type ScaleSettings, spreads } from './grpo.ts'

const defaults: ScaleSettings & { readonly single: SinglePolicy } = {
  scale: 'none',
  deviation: 'sample',
  epsilon: 1e-8,
  single: 'zero',
}

/**
 * RLOO: a reward less the weighted mean of the others in its group (Kool et al. 2019; Ahmadian et al.
 * 2024, arXiv 2402.14740); n/(n−1) · (r − mean) with equal weights. Scaled only if asked.
 */
export function rlooAdvantages(
  entries: readonly RewardedTrajectory[],
  options: Partial<typeof defaults> = {},
): Advantages {
  const settings = readOptions('The rloo advantage', defaults, options)
  checkWord('single', settings.single, ['zero', 'raw'])
  const groups = gatherGroups(entries)
  const spreadOf = spreads(groups, settings)
  return toEntries(entries, groups, group => {
    if (group.length === 1) return ({ reward }) => (settings.single === 'zero' ? 0 : reward)
    const origin = group[0]!.reward
    const spread = spreadOf(group)
    let weight = 0
    let total = 0
    for (const member of group) {
      weight += member.weight
      total += member.weight * (member.reward - origin)
    }
    return member => {
      // Distances from one reward, so that equal rewards leave exactly 0.
      const own = member.reward - origin
      return (own - (total - member.weight * own) / (weight - member.weight)) / spread
    }
  })
}
