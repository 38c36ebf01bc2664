import { type Advantages, gatherGroups, type RewardedTrajectory, toEntries } from '../advantage.ts'
import { readOptions } from '../options.ts'
import { type ScaleSettings, spreads } from './grpo.ts'

const defaults: ScaleSettings = { scale: 'group', deviation: 'sample', epsilon: 1e-6 }

/**
 * Pass@k training: only the best of a group is reinforced, by how far it leads the second,
 * (max − second) / (std + ε); all others have 0 (verl's `grpo_passk`). A tie for the best and a
 * group of one have 0.
 */
export function bestOfGroupAdvantages(
  entries: readonly RewardedTrajectory[],
  options: Partial<ScaleSettings> = {},
): Advantages {
  const settings = readOptions('The pass-at-k advantage', defaults, options)
  const groups = gatherGroups(entries)
  const spreadOf = spreads(groups, settings)
  return toEntries(entries, groups, group => {
    if (group.length === 1) return () => 0
    const [first, second] = [...group].sort((a, b) => b.reward - a.reward)
    const lead = (first!.reward - second!.reward) / spreadOf(group)
    return member => (member === first ? lead : 0)
  })
}
