import {
  type Advantages,
  gatherGroups,
  type Member,
  meanReward,
  type RewardedTrajectory,
  rewardDeviation,
  type SinglePolicy,
  toEntries,
} from '../advantage.ts'
import { checkNumber, checkWord, readOptions } from '../options.ts'
import type { DeviationKind } from '../statistics.ts'

/** How a centred reward is scaled. */
export interface ScaleSettings {
  /** By the spread of its `group`, of the whole `batch`, or not at all (`none`, Dr. GRPO). */
  readonly scale: 'group' | 'batch' | 'none'
  /** @default 'sample' */
  readonly deviation: DeviationKind
  /** Added to the spread: 1e-6 in verl, 1e-8 in Twinkle. */
  readonly epsilon: number
}

/** GRPO's scale, and the advantage of a group of one. */
export interface GrpoAdvantageSettings extends ScaleSettings {
  readonly single: SinglePolicy
}

const defaults: GrpoAdvantageSettings = {
  scale: 'group',
  deviation: 'sample',
  epsilon: 1e-6,
  single: 'zero',
}

/**
 * GRPO: (r − mean) / (std + ε) within the group (Shao et al. 2024, arXiv 2402.03300). A group of one
 * has advantage 0; with `single: 'raw'` it is taken as mean 0 and spread 1, as verl does.
 */
export function grpoAdvantages(
  entries: readonly RewardedTrajectory[],
  options: Partial<GrpoAdvantageSettings> = {},
): Advantages {
  const settings = readOptions('The grpo advantage', defaults, options)
  checkWord('single', settings.single, ['zero', 'raw'])
  const groups = gatherGroups(entries)
  const spreadOf = spreads(groups, settings)
  return toEntries(entries, groups, group => {
    if (group.length === 1) {
      return ({ reward }) => (settings.single === 'zero' ? 0 : reward / (1 + settings.epsilon))
    }
    const centre = meanReward(group)
    const spread = spreadOf(group)
    return ({ reward }) => (reward - centre) / spread
  })
}

/** Dr. GRPO: r − mean, unscaled (Liu et al. 2025, arXiv 2503.20783). */
export function drGrpoAdvantages(
  entries: readonly RewardedTrajectory[],
  options: { readonly single?: SinglePolicy } = {},
): Advantages {
  const { single } = readOptions('The dr-grpo advantage', { single: defaults.single }, options)
  return grpoAdvantages(entries, { scale: 'none', epsilon: 0, single })
}

/** The spread to divide a group's rewards by; 1 if there is none, so that 0 / 0 cannot happen. */
export function spreads(
  groups: readonly (readonly Member[])[],
  { scale, deviation, epsilon }: ScaleSettings,
): (group: readonly Member[]) => number {
  checkWord('scale', scale, ['group', 'batch', 'none'])
  checkWord('deviation', deviation, ['sample', 'population'])
  checkNumber('epsilon', epsilon, { low: 0 })
  if (scale === 'none') return () => 1
  if (scale === 'group') return group => rewardDeviation(group, deviation) + epsilon || 1
  const spread = rewardDeviation(groups.flat(), deviation) + epsilon || 1
  return () => spread
}
