import { checkLevel, type Interval, normalQuantile, scoreInterval } from '../intervals.ts'
import { mean, type Numbers } from '../statistics.ts'
import { studentQuantile } from './student.ts'

/** How the trials at one task went; trials at one task resemble each other. */
export interface Cluster {
  /** The share that succeeded. */
  readonly share: number
  readonly trials: number
}

/**
 * How alike trials at a task are assumed to be before any are seen (the correlation within a task), and how many tasks
 * that assumption is worth. They matter with few tasks; chosen by `npm run bench -- coverage`.
 */
const assumed = { rate: { likeness: 0.6, worth: 3 }, change: { likeness: 0.1, worth: 1 } }

/**
 * Bounds for the mean success over tasks like these. Wilson's score interval (1927) with the number of independent
 * trials that the tasks are worth (Kish 1965) and Student's quantile for what few tasks leave open (Korn and Graubard
 * 1998); the variance between tasks is drawn towards an assumed one, so that tasks that happened to agree do not count
 * as certainty. Of a single task the bounds hold its own rate: nothing is known of others.
 */
export function clusteredInterval(
  clusters: readonly Cluster[],
  { level = 0.95 }: { readonly level?: number } = {},
): Interval {
  checkLevel(level)
  const tasks = clusters.filter(({ trials }) => trials > 0)
  const shares = tasks.map(({ share }) => share)
  if (tasks.length === 0) return { low: 0, high: 1 }
  const rate = mean(shares)
  const z = normalQuantile((1 + level) / 2)
  if (tasks.length === 1) return scoreInterval(rate, tasks[0]!.trials, z)
  const { likeness, worth } = assumed.rate
  const alone = mean(tasks.map(({ trials }) => 1 / trials))
  const single = variance(shrunk(rate, tasks.length))
  const between = drawn(shares, { toward: single * (likeness + (1 - likeness) * alone), worth })
  const spread = Math.min(single, Math.max(single * alone, between))
  const effective = (tasks.length * single) / spread
  // What trials within a task leave open is binomial, and known; only the spread between tasks was estimated.
  const found = alone === 1 ? 0 : (spread / single - alone) / (1 - alone)
  const open = (found * (1 - alone)) / (found + (1 - found) * alone || 1)
  const freedom = (tasks.length - 1 + worth) / Math.max(open, 1e-3) ** 2
  return scoreInterval(rate, effective, studentQuantile((1 + level) / 2, freedom))
}

/** Bounds for the mean change of success over tasks like these, each tried before and after. */
export function clusteredChange(
  pairs: readonly (readonly [before: Cluster, after: Cluster])[],
  { level = 0.95 }: { readonly level?: number } = {},
): Interval {
  checkLevel(level)
  const changes = pairs.map(([before, after]) => after.share - before.share)
  const sides = [0, 1].map(side => pairs.map(pair => pair[side]!))
  const { likeness, worth } = assumed.change
  const count = pairs.length
  const toward = sides.reduce((sum, clusters) => {
    const alone = mean(clusters.map(({ trials }) => 1 / trials))
    const seen = count === 1 ? clusters[0]!.trials : count
    const single = variance(shrunk(mean(clusters.map(({ share }) => share)), seen))
    return sum + single * (count === 1 ? alone : likeness + (1 - likeness) * alone)
  }, 0)
  const spread = count === 1 ? toward : drawn(changes, { toward, worth })
  const quantile =
    count === 1
      ? normalQuantile((1 + level) / 2)
      : studentQuantile((1 + level) / 2, count - 1 + worth)
  return within(mean(changes), quantile * Math.sqrt(spread / count), [-1, 1])
}

/**
 * Bounds for the mean of any numbers, one per task: Student's (1908). One number, or several without a spread, say
 * nothing of others: the bounds are infinite.
 */
export function meanInterval(
  values: Numbers,
  { level = 0.95 }: { readonly level?: number } = {},
): Interval {
  checkLevel(level)
  if (values.length === 0) return { low: Number.NaN, high: Number.NaN }
  const spread = values.length > 1 ? sampleVariance(values) : 0
  if (spread === 0) return { low: Number.NEGATIVE_INFINITY, high: Number.POSITIVE_INFINITY }
  const reach = studentQuantile((1 + level) / 2, values.length - 1)
  return within(mean(values), reach * Math.sqrt(spread / values.length), [
    Number.NEGATIVE_INFINITY,
    Number.POSITIVE_INFINITY,
  ])
}

const variance = (rate: number): number => rate * (1 - rate)

/** A rate a little away from 0 and 1, by half a success and half a failure. */
const shrunk = (rate: number, count: number): number => (rate * count + 0.5) / (count + 1)

function sampleVariance(values: Numbers): number {
  const centre = mean(values)
  let squares = 0
  for (let index = 0; index < values.length; index++) squares += (values[index]! - centre) ** 2
  return squares / (values.length - 1)
}

/** The variance of values, drawn towards another that counts as so many of them. */
function drawn(
  values: Numbers,
  { toward, worth }: { readonly toward: number; readonly worth: number },
): number {
  const freedom = values.length - 1
  return (freedom * sampleVariance(values) + worth * toward) / (freedom + worth)
}

function within(centre: number, reach: number, [least, most]: readonly [number, number]): Interval {
  return { low: Math.max(least, centre - reach), high: Math.min(most, centre + reach) }
}

/**
 * Bounds for the mean reward over tasks like these, from the rewards of each task's attempts. Rewards of 0 and 1 are
 * successes; of a single task the bounds hold its own mean.
 */
export function rewardInterval(tasks: readonly Numbers[]): Interval {
  const scored = tasks.filter(({ length }) => length > 0)
  const isOf = (holds: (reward: number) => boolean): boolean =>
    scored.every(rewards => Array.from(rewards).every(holds))
  const asShares = (): Interval =>
    clusteredInterval(scored.map(rewards => ({ share: mean(rewards), trials: rewards.length })))
  if (scored.length > 0 && isOf(reward => reward === 0 || reward === 1)) return asShares()
  const bounds = meanInterval(scored.length === 1 ? scored[0]! : scored.map(mean))
  const isBounded = bounds.low !== Number.NEGATIVE_INFINITY
  return isBounded || !isOf(reward => reward >= 0 && reward <= 1) ? bounds : asShares()
}
