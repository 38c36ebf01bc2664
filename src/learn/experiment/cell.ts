import { join } from 'node:path'
import type { ExperimentBudget, ExperimentPrice } from './design.ts'
import type { ExperimentPlan, PlannedArm } from './plan.ts'

/** One arm with one seed. */
export interface Cell {
  readonly arm: string
  readonly seed: number
  /** The settings it is trained with. */
  readonly settings: Readonly<Record<string, unknown>>
  readonly budget: ExperimentBudget
  readonly price: ExperimentPrice | null
  /** Its run folder. */
  readonly out: string
}

/** Held-out tasks as they were solved at one moment. */
export interface CellMeasure {
  readonly success: number
  readonly reward: number
}

/** One step of a cell: what was spent until then, and how its attempts went. */
export interface CellStep {
  readonly tokens: number
  readonly seconds: number
  readonly success: number
  readonly reward: number
}

/** What a finished cell gave. */
export interface CellResult {
  readonly arm: string
  readonly seed: number
  /** Sampled tokens that it learned from. */
  readonly tokens: number
  readonly steps: number
  /** Seconds of its steps, without evaluations. */
  readonly seconds: number
  /** Of its tokens; 0 without a price. */
  readonly money: number
  readonly before: CellMeasure
  readonly after: CellMeasure
  readonly curve: readonly CellStep[]
}

/** The file that says that a cell has ended, beside its run folder. */
export const resultFile = ({ out }: Pick<Cell, 'out'>): string => `${out}.json`

/** Every cell of a plan, seed by seed, so that an experiment that is cut short has whole pairs. */
export function cellsOf(plan: ExperimentPlan, folder: string): readonly Cell[] {
  return plan.seeds.flatMap(({ seed }) =>
    plan.arms.map((arm: PlannedArm) => ({
      arm: arm.name,
      seed,
      settings: { ...arm.settings, seed },
      budget: plan.budget,
      price: plan.price ?? null,
      out: join(folder, 'cells', arm.name, String(seed)),
    })),
  )
}
