import type { Environment, Task } from '../core/environment.ts'
import type { Group } from '../core/group.ts'
import { openLanes } from '../core/lane.ts'
import type { Tree } from '../core/tree.ts'
import { scoreTree } from '../rollout/score.ts'
import { openRunReader } from '../store/store.ts'
import { type GatherOptions, gather } from '../weigh/gather.ts'

/** What stored trajectories are judged by anew. */
export interface RescoreOptions extends GatherOptions {
  readonly reward: Environment['reward']
  /** Rewards that run at one time. @default 64 */
  readonly concurrency?: number
  readonly signal: AbortSignal
}

/** A group before and after it was scored again. */
export interface Rescored {
  readonly task: Task
  readonly order: number
  readonly before: Group
  readonly after: Group
}

/** Scores, filters and weighs the stored groups of a run again; writes nothing. */
export async function* rescore(run: string, options: RescoreOptions): AsyncGenerator<Rescored> {
  const { reward, concurrency = 64, signal } = options
  const lanes = openLanes({ policy: 1, tools: 1, environment: 1, reward: concurrency })
  await using reader = await openRunReader(run)
  for await (const { group, task, order } of reader.groups()) {
    signal.throwIfAborted()
    const trees = treesOf(group)
    const members = await Promise.all(
      trees.map(tree => scoreTree(tree, task, { reward, lanes, signal })),
    )
    signal.throwIfAborted()
    const { id, step } = group
    const header = { id, task, ...(step !== undefined && { step }) }
    yield { task, order, before: group, after: gather(header, members.flat(), options) }
  }
}

/** The trees of a group, by member. */
export function treesOf(group: Group): readonly Tree[] {
  const trees = new Set([...group.members, ...group.unscored].map(({ tree }) => tree))
  return [...trees].sort((a, b) => a.member - b.member)
}

/** Two members of a group that changed places: the one that was better is now worse. */
export interface RankFlip {
  readonly group: string
  /** Was better, and is worse now. */
  readonly fallen: Ranked
  readonly risen: Ranked
}

/** A trajectory with its two rewards. */
export interface Ranked {
  readonly trajectory: string
  readonly before: number
  readonly after: number
}

/** The pairs within a group whose order turned around; ties on either side are none. */
export function rankFlips({ before, after }: Pick<Rescored, 'before' | 'after'>): RankFlip[] {
  const now = new Map(after.members.map(({ trajectory, reward }) => [trajectory.id, reward.total]))
  const ranked = before.members.flatMap(({ trajectory, reward }): Ranked[] => {
    const total = now.get(trajectory.id)
    if (total === undefined) return []
    return [{ trajectory: trajectory.id, before: reward.total, after: total }]
  })
  const flips: RankFlip[] = []
  for (const one of ranked) {
    for (const other of ranked) {
      if (one.before > other.before && one.after < other.after) {
        flips.push({ group: before.id, fallen: one, risen: other })
      }
    }
  }
  return flips
}

/** What scoring again changed over a whole run. */
export interface RescoreSummary {
  readonly groups: number
  readonly scored: number
  readonly changed: number
  readonly meanBefore: number
  readonly meanAfter: number
  /** Pairs that turned around, and in how many groups. */
  readonly flips: number
  readonly flippedGroups: number
  /** Trajectories that filters drop, before and after. */
  readonly droppedBefore: number
  readonly droppedAfter: number
  readonly unscored: number
}

/** Adds up what scoring again changed. */
export function openRescoreSummary(): {
  add(rescored: Rescored): readonly RankFlip[]
  summary(): RescoreSummary
} {
  const counts = { groups: 0, scored: 0, changed: 0, flips: 0, flippedGroups: 0, unscored: 0 }
  const dropped = { droppedBefore: 0, droppedAfter: 0 }
  const sums = { before: 0, after: 0, pairs: 0 }
  return {
    add(rescored) {
      const { before, after } = rescored
      const was = new Map(before.members.map(each => [each.trajectory.id, each.reward.total]))
      counts.groups++
      counts.scored += after.members.length
      counts.unscored += after.unscored.length
      for (const { trajectory, reward } of after.members) {
        const old = was.get(trajectory.id)
        if (old === undefined || old !== reward.total) counts.changed++
        if (old === undefined) continue
        sums.pairs++
        sums.before += old
        sums.after += reward.total
      }
      dropped.droppedBefore += before.members.filter(each => each.dropped).length
      dropped.droppedAfter += after.members.filter(each => each.dropped).length
      const flips = rankFlips(rescored)
      counts.flips += flips.length
      if (flips.length > 0) counts.flippedGroups++
      return flips
    },
    summary() {
      const mean = (sum: number): number => (sums.pairs === 0 ? 0 : sum / sums.pairs)
      return { ...counts, ...dropped, meanBefore: mean(sums.before), meanAfter: mean(sums.after) }
    },
  }
}
