import type { BranchPolicy } from '../branch.ts'

/** Every turn up to `depth` is continued `width` times. @default width 2, depth 2 */
export function fixedBranches({ width = 2, depth = 2 } = {}): BranchPolicy {
  return {
    name: 'fixed',
    widthBefore: ({ turn }) => (turn < depth ? width : 1),
  }
}
