import { coverageOf, type Stretch, turnByNode } from '../../base/core/credit.ts'
import type { Group, Judged } from '../../base/core/group.ts'
import type { SampledSegment, ScorerName } from '../../base/core/segment.ts'
import { type KlPenalty, klPenalty } from '../../base/math/kl.ts'
import { type OverlongSettings, overlongPenalty } from '../../base/math/overlong.ts'
import { type VoidDefinition, voidTurnsIn } from '../filters/void-turns.ts'
import type { BatchScale } from './batch-scale.ts'
import { type Compared, comparedReward } from './compared.ts'
import type { Estimate } from './estimate.ts'

/** How a teacher sets the advantage of tokens: alone, or added to the comparison within the group. */
export interface Distillation {
  readonly mode: 'alone' | 'added'
  /** The advantage per nat of difference between teacher and policy. */
  readonly coefficient: number
}

/** What void turns cost: themselves, which then teach nothing, or a part of the reward. */
export type VoidTurnShaping = { readonly definition: VoidDefinition } & (
  | { readonly kind: 'mask' }
  | { readonly kind: 'penalty'; readonly size: number }
)

/** Changes of rewards before they are compared, and of advantages after. Stored rewards are not changed. */
export interface Shaping {
  /** The penalty for long trajectories, in sampled tokens; with `alone`, also in groups whose rewards do not differ. */
  readonly overlong?: OverlongSettings & { readonly alone?: boolean }
  /** Subtracts the divergence from the reference, summed over sampled tokens, from the reward. */
  readonly kl?: KlPenalty
  readonly distillation?: Distillation
  readonly voidTurns?: VoidTurnShaping
}

/** A comparison that uses shaped rewards and, with a teacher, its log-probabilities for token advantages. */
export function shapedEstimate(estimate: Estimate, shaping: Shaping): Estimate {
  const { distillation, voidTurns } = shaping
  if (!Object.values(shaping).some(each => each !== undefined)) return estimate
  const compare: Estimate = (group, weighting) => {
    const compared = estimate(withShapedRewards(group, shaping), weighting)
    const taught = distillation ? distil(group, compared, distillation) : compared
    return voidTurns?.kind === 'mask' ? maskVoidTurns(group, taught, voidTurns.definition) : taught
  }
  return Object.assign(compare, estimate.batch && { batch: shapedScale(estimate.batch, shaping) })
}

/** The spread is that of the shaped rewards; what a teacher says is not divided by it. */
function shapedScale(batch: BatchScale, shaping: Shaping): BatchScale {
  return {
    rewardsOf: (group, weighting) => batch.rewardsOf(withShapedRewards(group, shaping), weighting),
    spreadOf: batch.spreadOf,
    over: spread => shapedEstimate(batch.over(spread), shaping),
  }
}

/** A group with the shaped rewards by which its members are compared; lengths decide nothing if rewards are equal. */
export function withShapedRewards<Member extends Judged>(
  group: Group<Member>,
  shaping: Shaping,
): Group<Member> {
  const { overlong, ...rest } = shaping
  const isAlone = overlong && !overlong.alone && hasEqualRewards(group)
  const given = isAlone ? rest : shaping
  return { ...group, members: group.members.map(member => shapeReward(member, given)) }
}

/** Attempts that earned the same would be told apart by their length alone, and scaled as if that were success. */
function hasEqualRewards({ members }: Group<Judged>): boolean {
  const rewards = members.flatMap(member => comparedReward(member) ?? [])
  return rewards.every(reward => reward === rewards[0])
}

function shapeReward<Member extends Judged>(
  member: Member,
  { overlong, kl, voidTurns }: Shaping,
): Member {
  const { reward, trajectory } = member
  const length = overlong ? overlongPenalty(trajectory.usage.sampled, overlong) : 0
  const distance = kl ? divergence(member, kl) : 0
  const empty = voidTurns?.kind === 'penalty' ? voidTurnPenalty(trajectory, voidTurns) : 0
  return { ...member, reward: { ...reward, total: reward.total + length - distance - empty } }
}

function voidTurnPenalty(
  trajectory: Judged['trajectory'],
  { definition, size }: Extract<VoidTurnShaping, { kind: 'penalty' }>,
): number {
  return voidTurnsIn(trajectory, definition).length > 0 ? size : 0
}

/** A comparison by which void turns teach nothing; the others of their trajectories do. */
function maskVoidTurns(
  { members }: Group<Judged>,
  compared: readonly Compared[],
  definition: VoidDefinition,
): readonly Compared[] {
  return members.map(({ tree, trajectory }, index) => {
    const own = compared[index]!
    const masked = new Set(voidTurnsIn(trajectory, definition))
    if (masked.size === 0 || own.advantage === null) return own
    const turnOf = turnByNode(tree, trajectory)
    const turns = trajectory.turns.map((_, turn) =>
      masked.has(turn) ? 0 : (own.turns?.[turn] ?? own.advantage!),
    )
    const stretches = own.stretches?.map(each =>
      masked.has(turnOf.get(each.node) ?? -1) ? { ...each, advantage: 0 } : each,
    )
    return { ...own, turns, ...(stretches && { stretches }) }
  })
}

/** The penalty summed over the sampled tokens of a trajectory, under the policy that sampled them. */
function divergence(member: Judged, penalty: KlPenalty): number {
  const penaltyAt = klPenalty({ estimator: 'k1', ...penalty })
  let total = 0
  eachToken(member, 'reference', (_, difference) => {
    total += penaltyAt(difference).value
  })
  return total
}

/**
 * On-policy distillation: a sampled token's advantage is how much likelier the teacher finds it, which is the
 * negated one-sample estimate of the reverse KL divergence.
 */
function distil(
  group: Group<Judged>,
  compared: readonly Compared[],
  { mode, coefficient }: Distillation,
): readonly Compared[] {
  return group.members.map((member, index) => {
    const own = compared[index]!
    if (own.advantage === null) return own
    const baseAt = mode === 'alone' ? () => 0 : advantagesOf(member, own)
    const stretches: Stretch[] = []
    let total = 0
    eachToken(member, 'teacher', ({ node, offset }, difference) => {
      const advantage = baseAt(node, offset) - coefficient * difference
      total += advantage
      stretches.push({ node, start: offset, end: offset + 1, advantage })
    })
    return { advantage: total / Math.max(1, stretches.length), stretches }
  })
}

/** The advantages of a member's tokens by a comparison. */
function advantagesOf(
  { tree, trajectory }: Judged,
  { advantage, turns, stretches = [] }: Compared,
): (node: number, offset: number) => number {
  const turnOf = turns && turnByNode(tree, trajectory)
  return (node, offset) => {
    const stretch = stretches.find(
      each => each.node === node && each.start <= offset && offset < each.end,
    )
    return stretch?.advantage ?? turns?.[turnOf?.get(node) ?? -1] ?? advantage ?? 0
  }
}

/**
 * Visits the sampled tokens of a trajectory with log π − log of the other policy; 0 at a token for which one of them
 * gave no number.
 */
function eachToken(
  { tree, trajectory }: Judged,
  name: ScorerName,
  visit: (token: { readonly node: number; readonly offset: number }, difference: number) => void,
): void {
  for (const [node, length] of coverageOf(tree, trajectory)) {
    const { segment } = tree.nodes[node]!
    if (segment.origin !== 'sampled') continue
    const { own, other } = pairOf(segment, name, trajectory.id)
    for (let offset = 0; offset < length; offset++) {
      const difference = own[offset]! - other[offset]!
      visit({ node, offset }, Number.isNaN(difference) ? 0 : difference)
    }
  }
}

function pairOf(
  { logprobs: own, others }: SampledSegment,
  name: ScorerName,
  trajectory: string,
): { readonly own: Float32Array; readonly other: Float32Array } {
  const other = others?.[name]
  if (own && other) return { own, other }
  const missing = own ? `of the ${name}; roll it with --${name} POLICY` : 'of its own policy'
  throw new Error(`${trajectory} has no log-probabilities ${missing}`)
}
