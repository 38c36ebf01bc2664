import { type Row, type RowForm, rowsOf } from '../src/base/core/row.ts'
import type { Tree } from '../src/base/core/tree.ts'

/** The rows of a tree whose endings are all worth the same. */
export function groupRowsOf(tree: Tree, form: RowForm): readonly Row[] {
  const credits = tree.trajectories.map(({ id }) => ({ trajectory: id, advantage: 1, weight: 1 }))
  return rowsOf(tree, { credits, form })
}
