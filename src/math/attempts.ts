/** One ending of an attempt: a chain has one, a tree several. */
export interface Ending {
  /** Whatever tells trees apart. */
  readonly tree: unknown
  /** What the ending counts for in its tree: the product of 1/width over its branchings. */
  readonly share: number
  readonly value: number
}

/**
 * One number per tree, in the order in which they come: the mean of its endings by their shares. Endings of one
 * tree have a beginning in common, so that a tree is one attempt, however many it has; its mean is what one
 * ending drawn from it is worth.
 */
export function attemptMeans(endings: readonly Ending[]): readonly number[] {
  const trees = new Map<unknown, { sum: number; share: number }>()
  for (const { tree, share, value } of endings) {
    const known = trees.get(tree) ?? { sum: 0, share: 0 }
    trees.set(tree, { sum: known.sum + share * value, share: known.share + share })
  }
  return [...trees.values()].map(({ sum, share }) => sum / share)
}
