import {
  detectableDifference,
  holm,
  type PairedDifference,
  pairedDifference,
} from '../../base/math/bounds/paired.ts'
import { deviation, mean } from '../../base/math/statistics.ts'
import type { CellResult } from './cell.ts'
import type { ExperimentMetric } from './design.ts'
import type { ExperimentPlan, PlannedArm } from './plan.ts'

/** One arm against the one it is compared with, on one metric, paired by seed. */
export interface ExperimentComparison {
  readonly arm: string
  readonly against: string
  readonly metric: ExperimentMetric
  /** How many seeds both have finished. */
  readonly pairs: number
  /** The settings in which the two arms differ; more than one is no controlled comparison. */
  readonly changed: readonly string[]
  readonly difference: {
    readonly value: number
    readonly low: number | null
    readonly high: number | null
  }
  /** The probability that the arm is better. */
  readonly better: number
  readonly p: number
  /** p after Holm's correction for all comparisons of the experiment. */
  readonly adjusted: number
  /** The smallest difference that so many seeds with this spread find in 80 of 100 experiments. */
  readonly couldHaveSeen: number | null
  /** Whether the arm was added after results had been seen. */
  readonly isAddedAfterLooking: boolean
}

/** One cell as the result lists it. */
export interface ExperimentCell extends Omit<CellResult, 'before' | 'after' | 'curve'> {
  /** Held-out success. */
  readonly before: number
  readonly after: number
  readonly rewardBefore: number
  readonly rewardAfter: number
  /** How far it went beyond the budget with its last step, as a share of it. */
  readonly overshoot: number
  readonly isAddedAfterLooking: boolean
}

/** What an experiment found, `experiment.json`. */
export interface ExperimentResult {
  readonly question: string
  readonly budget: ExperimentPlan['budget']
  readonly arms: readonly PlannedArm[]
  readonly seeds: ExperimentPlan['seeds']
  readonly cells: readonly ExperimentCell[]
  readonly comparisons: readonly ExperimentComparison[]
  /** Whether seeds were added after results had been seen: bounds and p then hold at every look, and are wider. */
  readonly isSequential: boolean
  /** Cells that the plan has and that have not finished. */
  readonly missing: number
}

/** Compares the cells that have finished, in the order of the plan, whichever ended first. */
export function experimentResult(
  plan: ExperimentPlan,
  finished: readonly CellResult[],
): ExperimentResult {
  const found = new Map(finished.map(result => [keyOf(result.arm, result.seed), result]))
  const cells = plan.seeds.flatMap(({ seed, look }) =>
    plan.arms.flatMap(arm => {
      const result = found.get(keyOf(arm.name, seed))
      return result ? [listed(result, plan, Math.max(look, arm.look) > 0)] : []
    }),
  )
  const isSequential = plan.seeds.some(({ look }) => look > 0)
  const raw = plan.arms.flatMap(arm =>
    plan.metrics.flatMap(metric => compare(arm, { metric, plan, found, isSequential }) ?? []),
  )
  const adjusted = holm(raw.map(({ p }) => p))
  return {
    question: plan.question,
    budget: plan.budget,
    arms: plan.arms,
    seeds: plan.seeds,
    cells,
    comparisons: raw.map((comparison, index) => ({ ...comparison, adjusted: adjusted[index]! })),
    isSequential,
    missing: plan.seeds.length * plan.arms.length - cells.length,
  }
}

const keyOf = (arm: string, seed: number): string => `${arm}/${seed}`

function listed(
  { before, after, curve: _, ...cell }: CellResult,
  { budget }: ExperimentPlan,
  isAddedAfterLooking: boolean,
): ExperimentCell {
  return {
    ...cell,
    before: before.success,
    after: after.success,
    rewardBefore: before.reward,
    rewardAfter: after.reward,
    overshoot: Math.max(0, cell[budget.kind] / budget.most - 1),
    isAddedAfterLooking,
  }
}

interface Comparing {
  readonly metric: ExperimentMetric
  readonly plan: ExperimentPlan
  readonly found: ReadonlyMap<string, CellResult>
  readonly isSequential: boolean
}

function compare(
  arm: PlannedArm,
  { metric, plan, found, isSequential }: Comparing,
): Omit<ExperimentComparison, 'adjusted'> | undefined {
  const { against } = arm
  if (against === null) return undefined
  const differences = plan.seeds.flatMap(({ seed }) => {
    const [own, other] = [arm.name, against].map(name => found.get(keyOf(name, seed)))
    return own && other ? [own.after[metric] - other.after[metric]] : []
  })
  if (differences.length === 0) return undefined
  const difference = pairedDifference(differences, { isSequential })
  const spread = differences.length > 1 ? deviation(differences) : Number.NaN
  const base = plan.arms.find(({ name }) => name === against)!
  return {
    arm: arm.name,
    against,
    metric,
    pairs: differences.length,
    changed: changedBetween(arm, base),
    difference: boundsOf(difference),
    better: difference.better,
    p: difference.p,
    // Differences that are all alike say nothing of what others would be.
    couldHaveSeen: spread > 0 ? finite(detectableDifference(spread, differences.length)) : null,
    isAddedAfterLooking: Math.max(arm.look, base.look) > 0,
  }
}

function boundsOf({ value, low, high }: PairedDifference): ExperimentComparison['difference'] {
  return { value, low: finite(low), high: finite(high) }
}

/** JSON has no infinity; what is unbounded is null. */
const finite = (value: number): number | null => (Number.isFinite(value) ? value : null)

function changedBetween(arm: PlannedArm, base: PlannedArm): readonly string[] {
  const names = new Set([...Object.keys(arm.settings), ...Object.keys(base.settings)])
  const differs = (name: string): boolean =>
    JSON.stringify(arm.settings[name]) !== JSON.stringify(base.settings[name])
  return [...names].filter(differs).sort()
}

/** The mean of one number over an arm's cells, with their number. */
export function armMean(
  { cells }: ExperimentResult,
  arm: string,
  value: (cell: ExperimentCell) => number,
): { readonly mean: number; readonly count: number } {
  const values = cells.filter(cell => cell.arm === arm).map(value)
  return { mean: values.length === 0 ? Number.NaN : mean(values), count: values.length }
}
