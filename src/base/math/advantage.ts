import { eachTrained, type TokenBatch } from './batch.ts'
import { type DeviationKind, weightedDeviation, weightedMean } from './statistics.ts'

/** Names a group or a trajectory; 1 and '1' are different names. */
export type Key = string | number

/**
 * A trajectory's reward, found by its keys and never by its place. A trajectory that became several
 * rows may be listed once per row: it is counted once.
 */
export interface RewardedTrajectory {
  readonly group: Key
  readonly trajectory: Key
  /** `undefined` means never scored: left out of every statistic, without an advantage. */
  readonly reward: number | undefined
  /** Its leaf weight in a tree, counted in the group's baseline. @default 1 */
  readonly weight?: number
  /** Its trained tokens; those of its rows add up. OPO needs it. */
  readonly length?: number
  /** The tree that it is a leaf of. Tree-GRPO needs it. */
  readonly tree?: Key
}

/** One per entry given, in the same order; `undefined` for what was never scored. */
export type Advantages = (number | undefined)[]

/** A scored trajectory, once, with the places of its entries. */
export interface Member {
  readonly reward: number
  readonly weight: number
  length: number | undefined
  readonly tree: Key | undefined
  readonly places: number[]
}

/** The advantage of a group of one: 0, as there is nothing to compare with (`zero`), or its bare reward (`raw`). */
export type SinglePolicy = 'zero' | 'raw'

/** The scored trajectories of each group, every one once. */
export function gatherGroups(entries: readonly RewardedTrajectory[]): Member[][] {
  const groups = new Map<Key, Map<Key, Member>>()
  entries.forEach((entry, place) => {
    if (entry.reward === undefined) return
    checkEntry(entry)
    const group = groups.get(entry.group) ?? new Map<Key, Member>()
    groups.set(entry.group, group)
    const member = group.get(entry.trajectory)
    if (member === undefined) group.set(entry.trajectory, memberOf(entry, place))
    else joinRow(member, entry, place)
  })
  return [...groups.values()].map(group => [...group.values()])
}

/** Hands every member's number to all its entries; the rule of a group is made once. */
export function toEntries(
  entries: readonly RewardedTrajectory[],
  groups: readonly (readonly Member[])[],
  ruleOf: (group: readonly Member[]) => (member: Member) => number,
): Advantages {
  const advantages: Advantages = new Array(entries.length).fill(undefined)
  for (const group of groups) {
    const advantageOf = ruleOf(group)
    for (const member of group) {
      const advantage = advantageOf(member)
      for (const place of member.places) advantages[place] = advantage
    }
  }
  return advantages
}

/** The weighted mean reward of some members. */
export function meanReward(members: readonly Member[]): number {
  return weightedMean(
    members.map(member => member.reward),
    members.map(member => member.weight),
  )
}

/** The weighted spread of their rewards. */
export function rewardDeviation(members: readonly Member[], kind: DeviationKind): number {
  const weights = members.map(member => member.weight)
  return weightedDeviation(
    members.map(member => member.reward),
    { weights, kind },
  )
}

/**
 * Every trained token receives its trajectory's advantage; context has 0. Trajectory i of the batch
 * is entry i. A trained token of a trajectory without an advantage is refused: mask it out.
 */
export function spreadAdvantages(
  batch: TokenBatch,
  advantages: readonly (number | undefined)[],
): Float64Array {
  const spread = new Float64Array(batch.mask.length)
  eachTrained(batch, (token, trajectory) => {
    const advantage = advantages[trajectory]
    if (advantage === undefined) {
      throw new RangeError(
        `Trajectory ${trajectory} has trained tokens but no advantage ` +
          `(${advantages.length} are known); one that was never scored must have mask 0.`,
      )
    }
    spread[token] = advantage
  })
  return spread
}

function memberOf(entry: RewardedTrajectory, place: number): Member {
  const { reward, weight = 1, length, tree } = entry
  return { reward: reward as number, weight, length, tree, places: [place] }
}

function joinRow(member: Member, entry: RewardedTrajectory, place: number): void {
  const { group, trajectory, reward, weight = 1, tree } = entry
  if (reward !== member.reward || weight !== member.weight || tree !== member.tree) {
    throw new RangeError(
      `Trajectory ${trajectory} of group ${group} is listed with reward ${member.reward}, weight ` +
        `${member.weight}, tree ${member.tree}, and again with ${reward}, ${weight}, ${tree}.`,
    )
  }
  member.places.push(place)
  if (entry.length !== undefined) member.length = (member.length ?? 0) + entry.length
}

function checkEntry({ group, trajectory, reward, weight = 1 }: RewardedTrajectory): void {
  if (!Number.isFinite(reward)) {
    throw new RangeError(
      `Trajectory ${trajectory} of group ${group} has reward ${reward}; ` +
        'leave it undefined if it was never scored.',
    )
  }
  if (!(Number.isFinite(weight) && weight > 0)) {
    throw new RangeError(`Trajectory ${trajectory} of group ${group} has weight ${weight}.`)
  }
}
