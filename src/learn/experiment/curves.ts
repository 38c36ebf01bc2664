import { pairedDifference } from '../../base/math/bounds/paired.ts'
import type { CellResult, CellStep } from './cell.ts'

/** What the curves of an experiment run over. */
export type CurveAxis = 'tokens' | 'seconds'

/** One arm's learning curve over its seeds. */
export interface ExperimentCurve {
  readonly arm: string
  readonly points: readonly CurvePoint[]
}

/** The mean success of training attempts at one place of the axis, with its bounds over seeds. */
export interface CurvePoint {
  readonly at: number
  readonly mean: number
  readonly low: number
  readonly high: number
}

/** How many places of the axis are looked at. */
const places = 40

/** The learning curves of all arms, as far as every cell has come: beyond it, arms would be compared by their quickest seeds. */
export function experimentCurves(
  cells: readonly CellResult[],
  axis: CurveAxis,
): readonly ExperimentCurve[] {
  const furthest = Math.min(...cells.map(({ curve }) => curve.at(-1)?.[axis] ?? 0))
  const arms = [...new Set(cells.map(({ arm }) => arm))]
  if (!(furthest > 0)) return []
  return arms.map(arm => {
    const own = cells.filter(cell => cell.arm === arm)
    const points = Array.from({ length: places }, (_, index) =>
      pointAt(own, axis, (furthest * (index + 1)) / places),
    )
    return { arm, points }
  })
}

function pointAt(cells: readonly CellResult[], axis: CurveAxis, at: number): CurvePoint {
  const values = cells.map(({ curve }) => successAt(curve, axis, at))
  const { value, low, high } = pairedDifference(values)
  // One seed, or seeds that are all alike, have no band.
  const within = (bound: number) =>
    Number.isFinite(bound) ? Math.min(1, Math.max(0, bound)) : value
  return { at, mean: value, low: within(low), high: within(high) }
}

/** Success around a place: the mean of the steps within a tenth of the way before it, or of the step that leads there. */
function successAt(curve: readonly CellStep[], axis: CurveAxis, at: number): number {
  const next = curve.findIndex(step => step[axis] >= at)
  const last = next === -1 ? curve.length - 1 : next
  const near = curve
    .slice(0, last + 1)
    .filter((step, index) => index === last || step[axis] >= 0.9 * at)
  return near.reduce((total, { success }) => total + success, 0) / near.length
}
