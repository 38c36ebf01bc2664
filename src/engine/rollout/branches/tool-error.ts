import type { BranchPolicy } from '../branch.ts'

/** The turn after a tool's error is continued `width` times: mistakes are where choices matter. @default 2 */
export function toolErrorBranches({ width = 2 } = {}): BranchPolicy {
  return {
    name: 'tool-error',
    widthBefore: ({ calls }) => (calls.some(call => call.problem !== undefined) ? width : 1),
  }
}
