/** The median of figures; of an even number of them the upper one. */
export function median(values: readonly number[]): number {
  return values.toSorted((a, b) => a - b)[values.length >> 1]!
}

/**
 * The median of the ratios of single rounds, in which the sides run one after the other: a machine's speed changes from
 * minute to minute, and the medians of each side alone would come from different minutes.
 */
export function medianRatio(ours: readonly number[], theirs: readonly number[]): number {
  return median(ours.map((own, round) => own / theirs[round]!))
}
