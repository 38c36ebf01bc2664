/** One ending of an attempt: a chain has one, a tree several. */
export interface Ending {
  /** Whatever tells trees apart. */
  readonly tree: unknown
  /** What the ending counts for in its tree: the product of 1/width over its branchings. */
  readonly share: number
  readonly value: number
}

/** Whether a reward is a success: parts that add up to the threshold may miss it by rounding. */
export function succeeds(reward: number, successAt: number): boolean {
  return reward >= successAt - 1e-9
}

/**
 * One number per tree, in order: the mean of its endings, weighted by their shares. A tree counts as one attempt,
 * however many endings it has, because its endings share a beginning; the mean is the expected value of one ending
 * drawn from it.
 */
export function attemptMeans(endings: readonly Ending[]): readonly number[] {
  const trees = new Map<unknown, { sum: number; share: number }>()
  for (const { tree, share, value } of endings) {
    const known = trees.get(tree) ?? { sum: 0, share: 0 }
    trees.set(tree, { sum: known.sum + share * value, share: known.share + share })
  }
  return [...trees.values()].map(({ sum, share }) => sum / share)
}
