import type { Environment, Task } from '../../base/core/environment.ts'
import { type Filter, type Group, heldOutFilter, reasonsUnscored } from '../../base/core/group.ts'
import { makeLanes } from '../../base/core/lane.ts'
import type { Tree } from '../../base/core/tree.ts'
import { scoreTree } from '../../engine/rollout/score.ts'
import { refuseBatch } from '../../engine/weigh/estimate.ts'
import { type GatherOptions, gather } from '../../engine/weigh/gather.ts'
import { filtersOf } from '../../engine/weigh/seats.ts'
import { openRunReader } from '../store/store.ts'

/** How stored trajectories are scored again. */
export interface RescoreOptions extends GatherOptions {
  readonly reward: Environment['reward']
  /** Rewards that run at one time. @default 64 */
  readonly concurrency?: number
  /** Seconds that each part of a reward may take before it fails. @default 600 */
  readonly rewardSeconds?: number
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
  const { reward, concurrency = 64, rewardSeconds, signal } = options
  refuseBatch(options.estimate, 'scoring again')
  const lanes = makeLanes({ policy: 1, tools: 1, environment: 1, reward: concurrency })
  await using reader = await openRunReader(run)
  for await (const { group, task, order } of reader.groups()) {
    signal.throwIfAborted()
    const trees = treesOf(group)
    const members = await Promise.all(
      trees.map(tree => scoreTree(tree, task, { reward, lanes, rewardSeconds, signal })),
    )
    signal.throwIfAborted()
    const { id, seat, step } = group
    const header = {
      id,
      task,
      ...(seat !== undefined && { seat }),
      ...(step !== undefined && { step }),
    }
    const filters = [...heldOut(group), ...filtersOf(group, options.filters)]
    const after = gather(header, members.flat(), { ...options, filters })
    yield { task, order, before: group, after }
  }
}

/** Drops held-out groups, which must never be trained on, whatever their new rewards. */
function heldOut({ members }: Group): readonly Filter[] {
  const verdicts = members.flatMap(({ trajectory, dropped }) =>
    dropped?.filter === heldOutFilter ? [[trajectory.id, dropped] as const] : [],
  )
  return verdicts.length === 0 ? [] : [{ name: heldOutFilter, judge: () => new Map(verdicts) }]
}

/** How many trajectories of a group had a reward before and have none now. */
export function lostScores({ before, after }: Pick<Rescored, 'before' | 'after'>): number {
  const had = new Set(before.members.map(({ trajectory }) => trajectory.id))
  return after.unscored.filter(({ trajectory }) => had.has(trajectory.id as never)).length
}

/** The trees of a group, by member. */
function treesOf(group: Group): readonly Tree[] {
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
function rankFlips({ before, after }: Pick<Rescored, 'before' | 'after'>): RankFlip[] {
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
  /** Over all that had a reward before, and over all that have one now; nothing if none has. */
  readonly meanBefore: number | null
  readonly meanAfter: number | null
  readonly scoredBefore: number
  /** Pairs that turned around, and in how many groups. */
  readonly flips: number
  readonly flippedGroups: number
  /** Trajectories that filters drop, before and after. */
  readonly droppedBefore: number
  readonly droppedAfter: number
  readonly unscored: number
  /** Trajectories that had a reward and have none now. */
  readonly lost: number
  /** Why trajectories have no reward now, the most frequent first. */
  readonly reasons: readonly { readonly reason: string; readonly count: number }[]
}

/** Adds up what scoring again changed. */
export function makeRescoreSummary(): {
  add(rescored: Rescored): readonly RankFlip[]
  summary(): RescoreSummary
} {
  const counts = { groups: 0, flips: 0, flippedGroups: 0, changed: 0, unscored: 0, lost: 0 }
  const dropped = { droppedBefore: 0, droppedAfter: 0 }
  const [before, after] = [makeMean(), makeMean()]
  const reasons = new Map<string, number>()
  return {
    add(rescored) {
      const was = rescored.before.members
      const now = rescored.after.members
      counts.groups++
      counts.unscored += rescored.after.unscored.length
      counts.lost += lostScores(rescored)
      counts.changed += changedScores(rescored)
      for (const { reward } of was) before.add(reward.total)
      for (const { reward } of now) after.add(reward.total)
      for (const { reason, count } of reasonsUnscored(rescored.after)) {
        reasons.set(reason, (reasons.get(reason) ?? 0) + count)
      }
      dropped.droppedBefore += was.filter(each => each.dropped).length
      dropped.droppedAfter += now.filter(each => each.dropped).length
      const flips = rankFlips(rescored)
      counts.flips += flips.length
      if (flips.length > 0) counts.flippedGroups++
      return flips
    },
    summary: () => ({
      ...counts,
      ...dropped,
      scored: after.count,
      scoredBefore: before.count,
      meanBefore: before.mean,
      meanAfter: after.mean,
      reasons: [...reasons]
        .map(([reason, count]) => ({ reason, count }))
        .sort((one, other) => other.count - one.count),
    }),
  }
}

/** How many trajectories have a different reward now, or their first one. */
function changedScores({ before, after }: Rescored): number {
  const was = new Map(before.members.map(each => [each.trajectory.id, each.reward.total]))
  return after.members.filter(({ trajectory, reward }) => was.get(trajectory.id) !== reward.total)
    .length
}

function makeMean() {
  let sum = 0
  return {
    count: 0,
    add(value: number): void {
      sum += value
      this.count++
    },
    get mean(): number | null {
      return this.count === 0 ? null : sum / this.count
    },
  }
}
