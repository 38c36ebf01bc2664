import { leafWeight } from '../../base/core/credit.ts'
import type { Group, Judged } from '../../base/core/group.ts'
import { lengthTo } from '../../base/core/tree.ts'
import type { Advantages } from '../../base/math/advantage.ts'
import type { RewardedTurn } from '../../base/math/advantages/turn-level.ts'
import type { LeafWeighting } from '../../base/math/credit.ts'
import { weightedMean } from '../../base/math/statistics.ts'
import { type Compared, comparedReward } from './compared.ts'

/**
 * Compares a group turn by turn. A turn earns the environment's step reward; the last one also gets the
 * rest of the trajectory's reward, so that the turns always sum to it. A member's own advantage is the
 * mean over its sampled tokens.
 */
export function compareTurns(
  group: Group<Judged>,
  weighting: LeafWeighting,
  compute: (turns: readonly RewardedTurn[]) => Advantages,
): readonly Compared[] {
  const advantages = compute(group.members.flatMap(member => turnsOf(group, member, weighting)))
  let place = 0
  return group.members.map(member => {
    const { length } = member.trajectory.turns
    const turns = advantages.slice(place, place + length)
    place += length
    const known = turns.filter(advantage => advantage !== undefined)
    if (known.length < length || length === 0) return { advantage: null }
    const tokens = tokensOf(member)
    // A server that hides its stop token may give turns without any.
    const isEmpty = tokens.every(count => count === 0)
    return { advantage: weightedMean(known, isEmpty ? undefined : tokens), turns: known }
  })
}

function turnsOf(
  group: Group<Judged>,
  member: Judged,
  weighting: LeafWeighting,
): readonly RewardedTurn[] {
  const { turns, id } = member.trajectory
  const total = comparedReward(member)
  const said = turns.reduce((sum, turn) => sum + (turn.reward ?? 0), 0)
  const weight = leafWeight(member.trajectory, weighting)
  return turns.map(({ reward = 0, anchor }, index) => {
    const rest = index === turns.length - 1 && total !== undefined ? total - said : 0
    return {
      group: group.id,
      trajectory: id,
      reward: total === undefined ? undefined : reward + rest,
      weight,
      ...(anchor !== undefined && { anchor }),
    }
  })
}

/** How many tokens each turn sampled. */
function tokensOf({ tree, trajectory }: Judged): readonly number[] {
  return trajectory.turns.map(({ from, end }) => lengthTo(tree, end) - tree.nodes[from]!.start)
}
