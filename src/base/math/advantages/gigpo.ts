import type { SinglePolicy } from '../advantage.ts'
import { checkNumber, checkWord, readOptions } from '../options.ts'
import { compare, gatherTurns, partition, type RewardedTurn, type Turn } from './turn-level.ts'

/** How GiGPO compares. */
export interface GigpoSettings {
  /** Discount of step returns. */
  readonly gamma: number
  /** ω: weight of the step advantage; 0 leaves GRPO. */
  readonly omega: number
  /** Divide by the spread (`group`) or not (`none`, the paper's leave-one-out-like form). */
  readonly scale: 'group' | 'none'
  /** Whether a trajectory counts once in its group's statistics, or once per turn as in older code. */
  readonly statistics: 'trajectories' | 'turns'
  readonly single: SinglePolicy
  readonly epsilon: number
}

const defaults: GigpoSettings = {
  gamma: 0.95,
  omega: 1,
  scale: 'group',
  statistics: 'trajectories',
  single: 'zero',
  epsilon: 1e-6,
}

/**
 * GiGPO: A^E + ω A^S (Feng et al. 2025, arXiv 2505.10978). A^E compares the trajectories of a group by
 * their undiscounted return; A^S compares the discounted returns of the turns that were taken from
 * the same anchor state, repeats within one trajectory included. A turn without an anchor, or
 * alone at its anchor, has A^S = 0. One advantage per turn given.
 */
export function gigpoAdvantages(
  turns: readonly RewardedTurn[],
  options: Partial<GigpoSettings> = {},
): (number | undefined)[] {
  const settings = readOptions('The gigpo advantage', defaults, options)
  checkNumber('omega', settings.omega)
  checkWord('statistics', settings.statistics, ['trajectories', 'turns'])
  checkWord('single', settings.single, ['zero', 'raw'])
  const advantages: (number | undefined)[] = new Array(turns.length).fill(undefined)
  for (const group of gatherTurns(turns, settings.gamma)) {
    const steps = stepAdvantages(group, settings)
    episodeAdvantages(group, settings).forEach((episode, index) => {
      for (const { place } of group[index]!) {
        advantages[place] = episode + settings.omega * (steps.get(place) ?? 0)
      }
    })
  }
  return advantages
}

/**
 * The share of turns that have another turn at their anchor. Near 0, GiGPO is GRPO: the anchors hold
 * something that never repeats.
 */
export function sharedAnchorShare(turns: readonly RewardedTurn[]): number {
  const groups = gatherTurns(turns, 1)
  const shared = groups.flatMap(atAnchors).filter(part => part.length > 1)
  const total = groups.flat(2).length
  return total === 0 ? 0 : shared.reduce((sum, part) => sum + part.length, 0) / total
}

/** A^E of every trajectory of a group. */
function episodeAdvantages(group: readonly Turn[][], settings: GigpoSettings): number[] {
  const returns = group.map(own => own.reduce((sum, turn) => sum + turn.reward!, 0))
  if (group.length === 1) {
    const divisor = settings.scale === 'group' ? 1 + settings.epsilon : 1
    return returns.map(value => (settings.single === 'zero' ? 0 : value / divisor))
  }
  if (settings.statistics === 'trajectories') {
    return compare(
      group.map(own => own[0]!),
      returns,
      settings,
    )
  }
  const perTurn = compare(
    group.flat(),
    group.flatMap((own, index) => own.map(() => returns[index]!)),
    settings,
  )
  let place = 0
  return group.map(own => {
    const advantage = perTurn[place]!
    place += own.length
    return advantage
  })
}

/** A^S by place, for the turns that have an anchor. */
function stepAdvantages(
  group: readonly Turn[][],
  settings: GigpoSettings,
): ReadonlyMap<number, number> {
  const steps = new Map<number, number>()
  for (const part of atAnchors(group)) {
    const advantages = compare(
      part,
      part.map(turn => turn.discounted),
      settings,
    )
    part.forEach((turn, index) => {
      steps.set(turn.place, advantages[index]!)
    })
  }
  return steps
}

function atAnchors(group: readonly Turn[][]): Turn[][] {
  const anchored = group.flat().filter(turn => turn.anchor !== undefined)
  return partition(anchored, turn => turn.anchor)
}
