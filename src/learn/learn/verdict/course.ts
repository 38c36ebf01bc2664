import { mean } from '../../../base/math/statistics.ts'

/** What of a training step tells how a run went; a line of `metrics.jsonl` has it too. */
export interface CourseStep {
  readonly success: number
  readonly reward: number
  /** Rows with an advantage, if the trainer tells. */
  readonly trainedRows?: number
  readonly entropy?: number
  readonly kl?: number
  readonly learningRate?: number
}

/** How a training run went, from its first steps to its last. */
export interface Course {
  readonly steps: number
  readonly success: Span
  readonly reward: Span
  readonly entropy?: Span
  /** The mean change of the policy per step that learned, in nats per token. */
  readonly kl?: number
  /** The rate of the last step, if it found itself. */
  readonly learningRate?: number
  /** The share of steps that had something to learn from, if the trainer tells. */
  readonly contrast?: number
}

/** A number over the first steps, over the last, and over as many before those. */
export interface Span {
  readonly first: number
  readonly previous: number
  readonly last: number
}

/** Reads how a run went from its steps. */
export function courseOf(steps: readonly CourseStep[]): Course {
  const { success, reward } = {
    success: spanOf(steps.map(step => step.success)),
    reward: spanOf(steps.map(step => step.reward)),
  }
  const told = <Name extends keyof CourseStep>(name: Name): readonly number[] =>
    steps.flatMap(step => step[name] ?? [])
  const [entropies, kls, rows] = [told('entropy'), told('kl'), told('trainedRows')]
  const learningRate = told('learningRate').at(-1)
  return {
    steps: steps.length,
    success,
    reward,
    ...(entropies.length > 0 && { entropy: spanOf(entropies) }),
    ...(kls.length > 0 && { kl: mean(kls) }),
    ...(learningRate !== undefined && { learningRate }),
    ...(rows.length > 0 && { contrast: mean(rows.map(count => Number(count > 0))) }),
  }
}

/** The means over the first fifth and over the last fifth, of at most eight each. */
function spanOf(values: readonly number[]): Span {
  if (values.length === 0) return { first: 0, previous: 0, last: 0 }
  const size = Math.min(8, Math.max(1, Math.floor(values.length / 5)))
  const earlier = values.slice(0, -size)
  const last = mean(values.slice(-size))
  return {
    first: mean(values.slice(0, size)),
    previous: earlier.length === 0 ? last : mean(earlier.slice(-size)),
    last,
  }
}
