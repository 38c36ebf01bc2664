import { checkWord } from './options.ts'

/**
 * What a leaf of a search tree counts for:
 * - `uniform`: 1, so that a token shared by d leaves is trained as if each full path were a row
 * - `branch`: Π 1/width over the forks on its path, the leaf's share of its tree; unbiased
 * - `hard`: 1, but a shared token counts once, with its leaves' mean advantage (ARPO's hard form)
 */
export const leafWeightNames = ['uniform', 'branch', 'hard'] as const

/** One of the three weightings. */
export type LeafWeighting = (typeof leafWeightNames)[number]

/** What a trained token carries: an advantage and how much it counts. */
export interface Credit {
  readonly advantage: number
  readonly weight: number
}

/** A leaf's weight, from the number of continuations at each fork on its path. */
export function leafWeight(weighting: LeafWeighting, widths: readonly number[]): number {
  checkWord('A leaf weighting', weighting, leafWeightNames)
  for (const width of widths) {
    if (!(Number.isInteger(width) && width >= 1)) {
      throw new RangeError(`A fork has at least one continuation, got ${width}.`)
    }
  }
  return weighting === 'branch' ? widths.reduce((weight, width) => weight / width, 1) : 1
}

/**
 * The credit of a token through which these trajectories pass: their weighted mean advantage and
 * their total weight (1 when `hard`); `undefined` when none is left, so that it is not trained.
 */
export function creditOf(weighting: LeafWeighting, through: readonly Credit[]): Credit | undefined {
  checkWord('A leaf weighting', weighting, leafWeightNames)
  let weight = 0
  let total = 0
  for (const trajectory of through) {
    weight += trajectory.weight
    total += trajectory.weight * trajectory.advantage
  }
  if (weight === 0) return undefined
  return { advantage: total / weight, weight: weighting === 'hard' ? 1 : weight }
}
