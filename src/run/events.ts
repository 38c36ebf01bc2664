import type { Group } from '../core/group.ts'
import type { Tree } from '../core/tree.ts'
import type { SpentKind } from './budget.ts'

/** What a run tells whoever listens, as it happens. */
export type RunEvent =
  | { readonly kind: 'attempt-start'; readonly task: string; readonly member: number }
  | { readonly kind: 'tree-end'; readonly tree: Tree }
  | { readonly kind: 'group-end'; readonly group: Group }
  | { readonly kind: 'budget-spent'; readonly of: SpentKind; readonly message: string }

/** Listens to a run; must not throw, and is never waited for. */
export type Listen = (event: RunEvent) => void
