import { readOptions } from './options.ts'
import { random, type Seed } from './random.ts'
import { mean, type Numbers, quantile } from './statistics.ts'

/** Bounds that hold an unknown number with the stated confidence. */
export interface Interval {
  readonly low: number
  readonly high: number
}

/**
 * Wilson's score interval (1927) for a success rate: (p + z²/2n ± z √(p(1−p)/n + z²/4n²)) / (1 + z²/n).
 * It stays inside [0, 1] and is honest at 0 and n successes. Without trials it is all of [0, 1].
 * `level` is 0.95 unless said otherwise.
 */
export function wilsonInterval(
  successes: number,
  trials: number,
  options: { readonly level?: number } = {},
): Interval {
  const { level } = readOptions('A Wilson interval', { level: 0.95 }, options)
  checkLevel(level)
  if (!(Number.isInteger(trials) && successes >= 0 && successes <= trials)) {
    throw new RangeError(`${successes} successes in ${trials} trials is not a count.`)
  }
  if (trials === 0) return { low: 0, high: 1 }
  return scoreInterval(successes / trials, trials, normalQuantile((1 + level) / 2))
}

/** Wilson's interval of a rate seen in so many independent trials, which need not be whole, at a quantile. */
export function scoreInterval(rate: number, trials: number, z: number): Interval {
  const centre = rate + (z * z) / (2 * trials)
  const reach = z * Math.sqrt((rate * (1 - rate)) / trials + (z * z) / (4 * trials * trials))
  const scale = 1 + (z * z) / trials
  return {
    low: rate === 0 ? 0 : (centre - reach) / scale,
    high: rate === 1 ? 1 : (centre + reach) / scale,
  }
}

/** What a bootstrap needs: its seed, and how it resamples. */
export interface BootstrapOptions {
  readonly seed: Seed
  /** @default 0.95 */
  readonly level?: number
  /** @default 1000 */
  readonly resamples?: number
  /** The number that is bounded. @default mean */
  readonly statistic?: (values: Float64Array) => number
}

/**
 * Efron's percentile bootstrap (1979): the statistic of `resamples` draws with replacement, and the
 * quantiles of those. The same seed gives the same bounds. NaN of nothing.
 */
export function bootstrapInterval(values: Numbers, options: BootstrapOptions): Interval {
  const defaults = { seed: options.seed, level: 0.95, resamples: 1000, statistic: mean }
  const { seed, level, resamples, statistic } = readOptions<Required<BootstrapOptions>>(
    'A bootstrap interval',
    defaults,
    options,
  )
  checkLevel(level)
  if (!(Number.isInteger(resamples) && resamples > 0)) {
    throw new RangeError(`A bootstrap needs at least one resample, got ${resamples}.`)
  }
  const next = random(seed)
  const drawn = new Float64Array(values.length)
  const statistics = Float64Array.from({ length: resamples }, () => {
    for (let index = 0; index < drawn.length; index++) {
      drawn[index] = values[Math.floor(next() * values.length)]!
    }
    return statistic(drawn)
  })
  return {
    low: quantile(statistics, (1 - level) / 2),
    high: quantile(statistics, (1 + level) / 2),
  }
}

/** The z with Φ(z) = probability, by Newton's method on Marsaglia's series for Φ (2004). */
export function normalQuantile(probability: number): number {
  let z = 0
  for (let step = 0; step < 50; step++) {
    const density = Math.exp((-z * z) / 2) / Math.sqrt(2 * Math.PI)
    const change = (normalBelow(z) - probability) / density
    z -= Math.max(-1, Math.min(1, change))
    if (Math.abs(change) < 1e-14) break
  }
  return z
}

function normalBelow(z: number): number {
  let term = z
  let sum = z
  for (let odd = 3; Math.abs(term) > Math.abs(sum) * 1e-17; odd += 2) {
    term *= (z * z) / odd
    sum += term
  }
  return 0.5 + (sum * Math.exp((-z * z) / 2)) / Math.sqrt(2 * Math.PI)
}

/** Refuses a level of confidence that is none. */
export function checkLevel(level: number): void {
  if (level > 0 && level <= 0.999999) return
  throw new RangeError(`A confidence level lies in (0, 0.999999], got ${level}.`)
}
