import { mean } from '../../../base/math/statistics.ts'

/** What is measured of a run in which rolling is ahead of learning. */
export interface Pace {
  /** A group took so many seconds, from its first attempt's beginning to its last one's end. */
  rolled(seconds: number): void
  /** The trainer was busy for so many seconds between two steps' groups. */
  learned(seconds: number): void
  /** Steps that rolling should be ahead, so that the trainer need not wait and nothing is older than it must be. */
  ahead(most: number): number
  /** How many steps of learning the slowest group of late took. */
  slowest(): number
}

/** How many groups and steps are remembered. */
const window = { groups: 128, steps: 8 } as const

/**
 * Makes a pace. Of groups that take d steps on average, d × groups per step are under way at any time; as many again as
 * a step takes must be complete when it asks, and chance makes both more or less.
 */
export function makePace(tasksPerStep: number): Pace {
  const groups: number[] = []
  const steps: number[] = []
  const keep = (values: number[], value: number, most: number): void => {
    values.push(value)
    if (values.length > most) values.shift()
  }
  const inSteps = (seconds: number): number => {
    const step = middle(steps)
    return step > 0 ? seconds / step : Number.POSITIVE_INFINITY
  }
  return {
    rolled: seconds => keep(groups, seconds, window.groups),
    learned: seconds => keep(steps, seconds, window.steps),
    ahead(most) {
      if (groups.length === 0 || steps.length === 0) return Math.min(1, most)
      const average = mean(groups)
      const spread = Math.sqrt(mean(groups.map(seconds => (seconds - average) ** 2)))
      const wanted = inSteps(average + (3 * spread) / Math.sqrt(tasksPerStep))
      return Math.min(Math.max(1, Math.ceil(wanted)), most)
    },
    slowest: () => (groups.length === 0 || steps.length === 0 ? 0 : inSteps(Math.max(...groups))),
  }
}

/** The middle one: a step with an evaluation behind it is no measure. */
function middle(values: readonly number[]): number {
  return values.toSorted((a, b) => a - b)[values.length >> 1] ?? 0
}
