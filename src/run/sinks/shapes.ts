import type { Group } from '../../base/core/group.ts'
import { isUnscored, type MemberRow } from '../rows/row-record.ts'
import { tokenCredit } from './credited-row.ts'

/** How the trajectories of a group lie in their trees, which decides who may compute advantages. */
export interface GroupShape {
  /** Trees with more than one trajectory that is written. */
  readonly trees: number
  /** Trajectories with more than one row. */
  readonly severalRows: number
  /** Rows whose tokens have different credit. */
  readonly unevenRows: number
}

/** Looks at the rows of a group. */
export function shapeOf(group: Group, rows: readonly MemberRow[]): GroupShape {
  const perTree = new Map<string, number>()
  for (const { tree } of [...group.members, ...group.unscored])
    perTree.set(tree.id, (perTree.get(tree.id) ?? 0) + 1)
  return {
    trees: [...perTree.values()].filter(count => count > 1).length,
    severalRows: new Set(
      rows.filter(({ row }) => row.count > 1).map(({ row }) => row.trajectory.id),
    ).size,
    unevenRows: rows.filter(isUneven).length,
  }
}

function isUneven(member: MemberRow): boolean {
  if (isUnscored(member.member) || member.member.dropped) return false
  const credit = tokenCredit(member)
  const first = member.row.mask.indexOf(1)
  return credit.some((value, token) => member.row.mask[token] === 1 && value !== credit[first])
}
