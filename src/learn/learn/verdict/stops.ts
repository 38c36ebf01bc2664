import type { Evaluation } from '../held-out.ts'

/** Why training ends before its last step: nothing to learn from, or nothing left to learn. */
export type Stopped = 'idle' | 'solved'

/** Says when a training run has nothing more to learn. */
export function makeStops(patience: number, version: number) {
  let idle = 0
  let last = version
  return {
    /** The weights after a step; steps that leave them alone are counted. */
    isIdle(now: number): boolean {
      idle = now === last ? idle + 1 : 0
      last = now
      return patience > 0 && idle >= patience
    },
  }
}

/** Held-out tasks that must be solved for an end: fewer may be solved by chance. */
const enoughSolved = 64

/** Whether two measurements in a row found every held-out task solved. */
export function isSolved(one: Evaluation, other: Evaluation): boolean {
  return [one, other].every(({ success, scored }) => success === 1 && scored >= enoughSolved)
}

/** Attempts that measuring may cost beside those that are learned from. */
const measuredShare = 0.2

/** The most measurements of a run between its ends. */
const measurements = 10

/**
 * Steps between held-out evaluations if nobody says: at most ten in a run, and a fifth of the
 * attempts. It depends on numbers alone, so that a run is the same on every machine.
 */
export function usualEvery(
  steps: number,
  { heldOut, perStep }: { readonly heldOut: number; readonly perStep: number },
): number {
  return Math.max(
    1,
    Math.ceil(steps / measurements),
    Math.ceil(heldOut / (measuredShare * perStep)),
  )
}
