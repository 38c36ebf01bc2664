import type { Interval } from '../intervals.ts'
import { deviation, mean, type Numbers } from '../statistics.ts'
import { studentBelow, studentQuantile } from './student.ts'

/** What paired differences say of their mean. */
export interface PairedDifference extends Interval {
  readonly value: number
  /** The probability that the mean is above zero, given these differences and no opinion before (Student 1908). */
  readonly better: number
  /** Two-sided; 1 if nothing can be said. */
  readonly p: number
}

/** How paired differences were gathered. */
export interface PairedOptions {
  /** @default 0.95 */
  readonly level?: number
  /**
   * Whether more were gathered after the first were seen. Then bounds and p hold however often one looks and goes
   * on, and are wider (the t-test martingale: Lai 1976, with a normal prior of the effect).
   */
  readonly isSequential?: boolean
}

/** The mean of paired differences with its bounds. One pair says nothing of the spread: its bounds are infinite. */
export function pairedDifference(
  differences: Numbers,
  { level = 0.95, isSequential = false }: PairedOptions = {},
): PairedDifference {
  const count = differences.length
  if (count === 0) throw new RangeError('Paired differences need at least one pair.')
  const value = mean(differences)
  if (count === 1)
    return {
      value,
      low: Number.NEGATIVE_INFINITY,
      high: Number.POSITIVE_INFINITY,
      better: 0.5,
      p: 1,
    }
  const error = deviation(differences) / Math.sqrt(count)
  if (error === 0) return withoutSpread(value, count)
  const t = value / error
  const reach =
    error *
    (isSequential ? sequentialReach(count, 1 - level) : studentQuantile((1 + level) / 2, count - 1))
  return {
    value,
    low: value - reach,
    high: value + reach,
    better: studentBelow(t, count - 1),
    p: isSequential ? sequentialP(t, count) : 2 * studentBelow(-Math.abs(t), count - 1),
  }
}

/**
 * Pairs that all differ alike say nothing of their spread: what is left is that all have the same sign, which chance
 * gives once in 2 ** (count − 1) cases.
 */
function withoutSpread(value: number, count: number): PairedDifference {
  if (value === 0) return { value, low: 0, high: 0, better: 0.5, p: 1 }
  const p = 2 ** (1 - count)
  const [low, high] = [Number.NEGATIVE_INFINITY, Number.POSITIVE_INFINITY]
  return { value, low, high, better: value > 0 ? 1 - p / 2 : p / 2, p }
}

/** The variance of the effect, in deviations, that the martingale bets on. */
const prior = 1

/** How many standard errors the bounds are away that hold at every look. */
function sequentialReach(count: number, alpha: number): number {
  const grown = 1 + count * prior
  const ratio = (Math.sqrt(grown) / alpha) ** (2 / count)
  if (ratio >= grown) return Number.POSITIVE_INFINITY
  return Math.sqrt(((count - 1) * (ratio - 1)) / (1 - ratio / grown))
}

/** One over the martingale: the smallest level at which zero is left out at this look. */
function sequentialP(t: number, count: number): number {
  const grown = 1 + count * prior
  const square = (t * t) / (count - 1)
  const evidence = ((1 + square) / (1 + square / grown)) ** (count / 2) / Math.sqrt(grown)
  return Math.min(1, 1 / evidence)
}

/** Holm's correction (1979): each p as it is after all comparisons that were made. */
export function holm(ps: Numbers): number[] {
  const order = Array.from(ps, (_, index) => index).sort((a, b) => ps[a]! - ps[b]!)
  const adjusted = new Array<number>(ps.length).fill(1)
  let highest = 0
  order.forEach((index, rank) => {
    highest = Math.max(highest, Math.min(1, (ps.length - rank) * ps[index]!))
    adjusted[index] = highest
  })
  return adjusted
}

/** The smallest mean difference that a design of so many pairs with this spread finds in 80 of 100 cases. */
export function detectableDifference(
  spread: number,
  pairs: number,
  { level = 0.95, power = 0.8 }: { readonly level?: number; readonly power?: number } = {},
): number {
  if (pairs < 2) return Number.POSITIVE_INFINITY
  const freedom = pairs - 1
  const reach = studentQuantile((1 + level) / 2, freedom) + studentQuantile(power, freedom)
  return (reach * spread) / Math.sqrt(pairs)
}
