import type { Advantages, Key, RewardedTrajectory } from '../advantage.ts'
import { checkNumber, readOptions } from '../options.ts'
import { type GrpoAdvantageSettings, grpoAdvantages } from './grpo.ts'

/** Tree-GRPO's two comparisons, weighed. */
export interface TreeGrpoSettings extends GrpoAdvantageSettings {
  /** Weight of the comparison with all leaves of the group. */
  readonly inter: number
  /** Weight of the comparison with the leaves of the same tree. */
  readonly intra: number
}

/**
 * Tree-GRPO: A_inter + A_intra, the same normalisation once over all leaves of the group and once
 * over those of the leaf's own tree (Ji et al. 2025, arXiv 2509.21240).
 */
export function treeGrpoAdvantages(
  entries: readonly RewardedTrajectory[],
  options: Partial<TreeGrpoSettings> = {},
): Advantages {
  const defaults: TreeGrpoSettings = {
    inter: 1,
    intra: 1,
    scale: 'group',
    deviation: 'sample',
    epsilon: 1e-6,
    single: 'zero',
  }
  const { inter, intra, ...settings } = readOptions('The tree-grpo advantage', defaults, options)
  checkNumber('inter', inter)
  checkNumber('intra', intra)
  const across = grpoAdvantages(entries, settings)
  const within = grpoAdvantages(byTree(entries), settings)
  return across.map((advantage, place) =>
    advantage === undefined ? undefined : inter * advantage + intra * within[place]!,
  )
}

/** The entries with every tree as a group of its own. */
function byTree(entries: readonly RewardedTrajectory[]): RewardedTrajectory[] {
  const names = new Map<Key, Map<Key, number>>()
  let count = 0
  return entries.map(entry => {
    if (entry.tree === undefined) {
      throw new TypeError(`Tree-GRPO needs the tree of trajectory ${entry.trajectory}.`)
    }
    const trees = names.get(entry.group) ?? new Map<Key, number>()
    names.set(entry.group, trees)
    const name = trees.get(entry.tree) ?? count++
    trees.set(entry.tree, name)
    return { ...entry, group: name }
  })
}
