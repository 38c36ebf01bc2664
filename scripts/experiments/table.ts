import type { Measured } from './arm.ts'

/** Student's t for 95 % at 1, 2, … degrees of freedom. */
const student = [12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228]

/** A mean with the half-width of its 95 % interval, and the spread it comes from. */
export function interval(values: readonly number[]): {
  readonly mean: number
  readonly reach: number
  readonly deviation: number
} {
  const { length } = values
  const mean = values.reduce((sum, value) => sum + value, 0) / Math.max(1, length)
  if (length < 2) return { mean, reach: Number.NaN, deviation: Number.NaN }
  const squares = values.reduce((sum, value) => sum + (value - mean) ** 2, 0)
  const deviation = Math.sqrt(squares / (length - 1))
  const t = student[length - 2] ?? 1.96
  return { mean, deviation, reach: (t * deviation) / Math.sqrt(length) }
}

/** A mean and its interval as a cell of a table. */
export function cell(values: readonly number[], digits = 3): string {
  const { mean, reach } = interval(values)
  return `${mean.toFixed(digits)} ± ${reach.toFixed(digits)}`
}

/** The difference of final rewards to another arm, paired by seed; marked where the interval leaves 0 out. */
export function difference(runs: readonly Measured[], base: readonly Measured[]): string {
  const pairs = runs.flatMap(run => {
    const other = base.find(({ seed }) => seed === run.seed)
    return other ? [run.curve.at(-1)!.reward - other.curve.at(-1)!.reward] : []
  })
  const { mean, reach } = interval(pairs)
  const sign = mean < 0 ? '−' : '+'
  const text = `${sign}${Math.abs(mean).toFixed(3)} ± ${reach.toFixed(3)}`
  return Math.abs(mean) > reach ? `**${text}**` : text
}
