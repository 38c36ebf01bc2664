import type { PolicyCapabilities } from '../../../base/core/policy.ts'
import { branchProbability } from '../../../base/math/entropy.ts'
import type { BranchPoint, BranchPolicy } from '../branch.ts'
import { turnEntropy } from '../entropy.ts'

/** ARPO's parameters, with the defaults of its published code. */
export interface ArpoOptions {
  /** Paths that start from the opening. @default 8 */
  readonly initial?: number
  /** Continuations of a turn that branches. @default 2 */
  readonly beam?: number
  /** Chance of branching where entropy has not changed. @default 0.5 */
  readonly chance?: number
  /** How much a rise of entropy adds to it. @default 0.2 */
  readonly weight?: number
  /** Tokens of a turn that are measured. @default 20 */
  readonly tokens?: number
  /**
   * Which turn is measured: the one `after` the tool result, as the paper has it, or the one
   * `before` it, as the released code does. @default 'after'
   */
  readonly measure?: 'after' | 'before'
  readonly vocabulary: number
}

/**
 * Branches where entropy rises after a tool result (Dong et al. 2025, arXiv 2507.19849). The rise
 * is against the trajectory's own first turn; the turn that was measured stays as the first branch.
 */
export function arpoBranches(options: ArpoOptions): BranchPolicy {
  const settings = {
    initial: 8,
    beam: 2,
    chance: 0.5,
    weight: 0.2,
    tokens: 20,
    measure: 'after',
    ...options,
  } as const
  const width = (point: BranchPoint, measured: number): number => {
    if (point.turn === 0 || point.calls.length === 0) return 1
    const [first, now] = [0, measured].map(turn => turnEntropy(point.turns[turn] ?? [], settings))
    if (first === undefined || now === undefined) return 1
    const chance = branchProbability(now - first, {
      base: settings.chance,
      weight: settings.weight,
    })
    let branches = 1
    for (let extra = 1; extra < settings.beam; extra++) if (point.random() < chance) branches++
    return branches
  }
  return {
    name: 'arpo',
    starts: settings.initial,
    needs: needsEntropy,
    topLogprobs: 10,
    ...(settings.measure === 'after'
      ? { widthAfter: (point: BranchPoint) => width(point, point.turn) }
      : { widthBefore: (point: BranchPoint) => width(point, point.turn - 1) }),
  }
}

function needsEntropy({ entropies, topLogprobs }: PolicyCapabilities): string | undefined {
  return entropies || topLogprobs >= 2 ? undefined : 'entropies or at least 2 top log-probabilities'
}
