import { createHash } from 'node:crypto'
import { coverageOf } from '../../base/core/credit.ts'
import type { Filter, Scored } from '../../base/core/group.ts'
import type { TrajectoryId } from '../../base/core/ids.ts'
import { SettingError } from '../../base/core/names/setting-error.ts'
import type { Reward } from '../../base/core/reward.ts'
import type { Trajectory } from '../../base/core/trajectory.ts'
import type { Tree } from '../../base/core/tree.ts'
import { type DropFrom, perGroup } from './filter.ts'

/**
 * Drops groups whose rewards are all equal, to within `spread`: nothing can be learned from them. With `part`, groups in
 * which that part of the reward is equal, whatever other parts and penalties make of them.
 */
export function equalRewards({
  spread = 0,
  part,
}: {
  readonly spread?: number
  readonly part?: string
} = {}): Filter {
  return perGroup('equal-rewards', ({ members }) => {
    const rewards = members.map(({ reward }) =>
      part === undefined ? reward.total : partOf(reward, part),
    )
    if (rewards.length === 0) return undefined
    const [low, high] = [Math.min(...rewards), Math.max(...rewards)]
    if (high - low > spread) return undefined
    const compared = part === undefined ? 'rewards' : `rewards by "${part}"`
    return `all ${rewards.length} ${compared} are ${low === high ? low : `between ${low} and ${high}`}`
  })
}

function partOf({ parts }: Reward, name: string): number {
  const found = parts.find(part => part.name === name)
  if (found) return found.score
  const known = parts.map(part => part.name).join(', ')
  throw new SettingError(
    `the filter "equal-rewards" is to look at the part "${name}" of rewards, which have ${known || 'none'}`,
  )
}

/** Drops groups of which too few members could be scored to be compared. @default 2 */
export function failedMembers({ least = 2 }: { readonly least?: number } = {}): Filter {
  return perGroup('failed-members', ({ members, unscored }) => {
    if (members.length >= least) return undefined
    return `${members.length} of ${members.length + unscored.length} members were scored, ${least} are needed`
  })
}

/** Drops trajectories whose sampled tokens are those of an earlier sibling. */
export function duplicates({ from = 'loss' }: { readonly from?: DropFrom } = {}): Filter {
  return {
    name: 'duplicates',
    judge({ members }) {
      const seen = new Map<string, TrajectoryId>()
      const verdicts = new Map<TrajectoryId, { reason: string; from: DropFrom }>()
      for (const member of members) {
        const key = sampledKey(member)
        const first = seen.get(key)
        if (first === undefined) seen.set(key, member.trajectory.id)
        else
          verdicts.set(member.trajectory.id, {
            reason: `samples the same tokens as ${first}`,
            from,
          })
      }
      return verdicts
    },
  }
}

/** Of all its paths: two whose last ones agree may have been rewritten from different beginnings. */
function sampledKey({ tree, trajectory }: Scored): string {
  const hash = createHash('sha256')
  for (const [node, length] of sampledNodes(tree, trajectory)) {
    const { buffer, byteOffset } = tree.nodes[node]!.segment.ids
    hash.update(new Uint8Array(buffer, byteOffset, length * 4)).update('|')
  }
  return hash.digest('hex')
}

/** The sampled nodes of a trajectory over all its paths, each with how far the trajectory goes into it. */
function sampledNodes(tree: Tree, trajectory: Trajectory): readonly (readonly [number, number])[] {
  return [...coverageOf(tree, trajectory)].filter(
    ([node]) => tree.nodes[node]!.segment.origin === 'sampled',
  )
}

/** Drops trajectories with a trained token older than this many policy versions. @default 4 */
export function stale({
  versions = 4,
  current,
  from = 'loss',
}: {
  readonly versions?: number
  /** The version that would consume them now. */
  readonly current: () => number
  readonly from?: DropFrom
}): Filter {
  return {
    name: 'stale',
    ofTheMoment: true,
    judge({ members }) {
      const verdicts = new Map<TrajectoryId, { reason: string; from: DropFrom }>()
      for (const member of members) {
        const age = current() - oldestVersion(member)
        if (age > versions) {
          verdicts.set(member.trajectory.id, { reason: `sampled ${age} versions ago`, from })
        }
      }
      return verdicts
    },
  }
}

/** The oldest version that can have sampled a token of a trajectory, on whichever of its paths. */
export function oldestVersion({ tree, trajectory }: Pick<Scored, 'tree' | 'trajectory'>): number {
  const versions = sampledNodes(tree, trajectory).map(
    ([node]) => tree.nodes[node]!.segment.version!.from,
  )
  return versions.reduce((oldest, version) => Math.min(oldest, version), Number.POSITIVE_INFINITY)
}
