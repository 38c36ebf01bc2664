import { leafWeight } from '../../base/core/credit.ts'
import type { Task } from '../../base/core/environment.ts'
import type { Filter, Group, Judged, Scored, Unscored, Verdicts } from '../../base/core/group.ts'
import type { GroupId, TrajectoryId } from '../../base/core/ids.ts'
import { SettingError } from '../../base/core/names/setting-error.ts'
import type { LeafWeighting } from '../../base/math/credit.ts'
import { isScored } from '../rollout/score.ts'
import type { Estimate } from './estimate.ts'

/** How scored trajectories become a weighted group. */
export interface GatherOptions {
  readonly filters: readonly Filter[]
  readonly estimate: Estimate
  readonly weighting: LeafWeighting
}

/** What is known of a group before it is compared. */
export interface GatherHeader {
  readonly id: GroupId
  readonly task: Task
  readonly seat?: string
  readonly step?: number
}

/** Gathers the members of a group, lets the filters judge, and weighs what is left. */
export function gather(
  header: GatherHeader,
  members: readonly (Scored | Unscored)[],
  options: GatherOptions,
): Group {
  const scored: Group<Scored> = {
    id: header.id,
    task: header.task.id,
    ...(header.seat !== undefined && { seat: header.seat }),
    ...(header.step !== undefined && { step: header.step }),
    members: members.filter(isScored),
    unscored: members.filter((member): member is Unscored => !isScored(member)),
  }
  return weigh(judge(scored, options.filters), options)
}

/** The first filter that drops a trajectory is the one whose reason is kept. */
export function judge(group: Group<Scored>, filters: readonly Filter[]): Group<Judged> {
  const dropped = new Map<TrajectoryId, Judged['dropped']>()
  for (const filter of filters) {
    for (const [id, verdict] of verdictsOf(filter, group)) {
      if (!dropped.has(id)) dropped.set(id, { filter: filter.name, ...verdict })
    }
  }
  // Written out, here and below: Node 20 takes microseconds for a literal that spreads first and goes on.
  const members = group.members.map(({ tree, trajectory, reward }) => ({
    tree,
    trajectory,
    reward,
    dropped: dropped.get(trajectory.id) ?? null,
  }))
  return { ...group, members }
}

/** A filter may be a user's, in JavaScript. */
function verdictsOf(filter: Filter, group: Group<Scored>): Verdicts {
  const verdicts: Partial<Verdicts> | null | undefined = filter.judge(group)
  if (verdicts?.[Symbol.iterator]) return verdicts as Verdicts
  throw new SettingError(
    `the filter "${filter.name}" must give a Map from the ids of trajectories to drop to reasons (an empty one keeps all); ` +
      `its judge() gave ${verdicts === null ? 'null' : typeof verdicts}`,
  )
}

/** Gives each member its advantage and the weight its tokens are trained with. */
export function weigh(group: Group<Judged>, options: Omit<GatherOptions, 'filters'>): Group {
  const { estimate, weighting } = options
  const compared = estimate(group, weighting)
  const members = group.members.map(({ tree, trajectory, reward, dropped }, index) => {
    const { advantage, turns, stretches } = compared[index]!
    return {
      tree,
      trajectory,
      reward,
      dropped,
      advantage,
      ...(turns && { turns }),
      ...(stretches && { stretches }),
      weight: leafWeight(trajectory, weighting),
    }
  })
  return { ...group, members }
}
