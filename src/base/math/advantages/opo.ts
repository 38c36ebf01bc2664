import {
  type Advantages,
  gatherGroups,
  type RewardedTrajectory,
  type SinglePolicy,
  toEntries,
} from '../advantage.ts'
import { checkWord, readOptions } from '../options.ts'
import { weightedMean } from '../statistics.ts'

const defaults: { readonly single: SinglePolicy } = { single: 'zero' }

/**
 * OPO: a reward less the length-weighted mean of its group, Σ len·r / Σ len, the baseline of least
 * variance if gradient norms grow with length (Hao et al. 2025, arXiv 2505.23585).
 */
export function opoAdvantages(
  entries: readonly RewardedTrajectory[],
  options: Partial<typeof defaults> = {},
): Advantages {
  const { single } = readOptions('The opo advantage', defaults, options)
  checkWord('single', single, ['zero', 'raw'])
  const groups = gatherGroups(entries)
  return toEntries(entries, groups, group => {
    if (group.length === 1) return ({ reward }) => (single === 'zero' ? 0 : reward)
    const lengths = group.map(({ length, weight, places }) => {
      if (length !== undefined && length >= 0) return length * weight
      const { trajectory } = entries[places[0]!]!
      throw new RangeError(`OPO needs trajectory ${trajectory}'s trained tokens, got ${length}.`)
    })
    // Without a token in the group there is nothing to train, and nothing to weigh rewards by.
    if (lengths.every(length => length === 0)) return () => 0
    const baseline = weightedMean(
      group.map(member => member.reward),
      lengths,
    )
    return ({ reward }) => reward - baseline
  })
}
