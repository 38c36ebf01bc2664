import { checkNumber } from './options.ts'

/** Where a length begins to cost, and how much. */
export interface OverlongSettings {
  /** The hard limit, in trained tokens. */
  readonly maximum: number
  /** The last stretch before it, over which the penalty grows. */
  readonly buffer: number
  /** The penalty at the limit and beyond. @default 1 */
  readonly factor?: number
}

/**
 * DAPO's soft punishment of overlong answers (Yu et al. 2025, arXiv 2503.14476), to be added to a reward: 0
 * up to maximum − buffer, then falling linearly to −factor at the maximum.
 */
export function overlongPenalty(
  length: number,
  { maximum, buffer, factor = 1 }: OverlongSettings,
): number {
  checkNumber('The length', length, { low: 0 })
  checkNumber('The maximum', maximum, { low: 0 })
  checkNumber('The buffer', buffer, { low: Number.MIN_VALUE, high: maximum })
  checkNumber('The factor', factor, { low: 0 })
  const excess = Math.max(0, Math.min(buffer, length - (maximum - buffer)))
  return excess === 0 ? 0 : (-factor * excess) / buffer
}
