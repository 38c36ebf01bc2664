import type { Credit } from '../../base/core/credit.ts'
import type { Group, Unscored, Weighted } from '../../base/core/group.ts'
import type { TrajectoryId } from '../../base/core/ids.ts'
import { type Row, type RowForm, type Run, rowsOf } from '../../base/core/row.ts'
import type { VersionRange } from '../../base/core/segment.ts'
import type { Tree } from '../../base/core/tree.ts'
import type { LeafWeighting } from '../../base/math/credit.ts'

/** Which trajectories an export writes besides those that are trained on. */
export interface ExportSelection {
  readonly failed: boolean
  readonly filtered: boolean
}

/** A row with the member of the group that it belongs to. */
export interface MemberRow {
  readonly row: Row
  readonly member: Weighted | Unscored
  readonly tree: Tree
}

/** How the rows of a group are made. */
export interface GroupRowOptions {
  /** @default 'uniform' */
  readonly weighting?: LeafWeighting
  /** @default 'once' */
  readonly form?: RowForm
  /** @default neither */
  readonly include?: ExportSelection
}

/** All training rows of a group in canonical order: member, trajectory, row. */
export function groupRows(group: Group, options: GroupRowOptions = {}): readonly MemberRow[] {
  const {
    include = { failed: false, filtered: false },
    weighting = 'uniform',
    form = 'once',
  } = options
  const members = new Map<TrajectoryId, Weighted | Unscored>()
  for (const member of [...group.members, ...group.unscored])
    members.set(member.trajectory.id, member)
  const trees = [...new Set([...members.values()].map(member => member.tree))]
  return trees
    .sort((a, b) => a.member - b.member)
    .flatMap(tree =>
      rowsOf(tree, {
        credits: creditsOf(group, tree),
        weighting,
        form,
        include: extras(group, tree, include),
      }).map(row => ({ row, tree, member: members.get(row.trajectory.id)! })),
    )
}

/** The credits of a tree's trajectories that are trained on. */
export function creditsOf(group: Group, tree: Tree): readonly Credit[] {
  return group.members
    .filter(member => member.tree === tree && isTrained(member))
    .map(({ trajectory, advantage, weight, turns, stretches, importance }) => ({
      trajectory: trajectory.id,
      advantage: advantage!,
      weight,
      ...(turns && { turns }),
      ...(stretches && { stretches }),
      ...(importance && { importance }),
    }))
}

function extras(group: Group, tree: Tree, include: ExportSelection): ReadonlySet<TrajectoryId> {
  const failed = include.failed ? group.unscored : []
  const filtered = include.filtered ? group.members.filter(member => member.dropped !== null) : []
  return new Set(
    [...failed, ...filtered]
      .filter(member => member.tree === tree)
      .map(member => member.trajectory.id),
  )
}

/** Whether a member never got a reward. */
export function isUnscored(member: Weighted | Unscored): member is Unscored {
  return !('reward' in member)
}

/** Whether a member is trained on; failed and filtered ones, and those that could not be compared, are not. */
export function isTrained(member: Weighted | Unscored): boolean {
  return !isUnscored(member) && member.dropped === null && member.advantage !== null
}

/** Runs as `[start, end, value]`. */
export function toTriples<Value, Written>(
  runs: readonly Run<Value>[],
  write: (value: Value) => Written,
): readonly (readonly [number, number, Written])[] {
  return runs.map(({ start, end, value }) => [start, end, write(value)] as const)
}

/** A version as it is written: one integer, or the range it can lie in. */
export function versionNumber({ from, to }: VersionRange): number | readonly [number, number] {
  return from === to ? from : [from, to]
}
