import { mean } from '../../base/math/statistics.ts'
import type { SurveyArm } from './survey.ts'

/** What training would probably need. */
export interface Advice {
  /** Whether it is worth trying, in words. */
  readonly verdict: string
  readonly shots: number
  readonly group: number
  /** Share of groups of that size that would have contrast. */
  readonly contrast: number
  readonly learningRate: number
  readonly steps: number
  /** On this machine, if learning takes as long as sampling. */
  readonly minutes: number
}

/** Groups of a step of training. */
const groupsPerStep = 8
/** Sizes of groups that are tried, and the share with contrast that is enough. */
const sizes = [4, 8, 16, 32]
const enoughContrast = 0.5

/** By success at the start: the rate of an adapter, and after how many steps such tasks were learned. */
const usual = [
  { from: 0.3, learningRate: 5e-4, steps: 10 },
  { from: 0.05, learningRate: 3e-4, steps: 30 },
  { from: 0, learningRate: 2e-4, steps: 60 },
] as const

/** Chooses between the ways that were measured, and says what training in it would need. */
export function advise(arms: readonly SurveyArm[]): Advice {
  const arm = arms.reduce((best, each) => (each.success > best.success ? each : best))
  const expected = sizes.map(size => ({ size, contrast: contrastOf(arm.perTask, size) }))
  const { size: group, contrast } =
    expected.find(each => each.contrast >= enoughContrast) ?? expected.at(-1)!
  const { learningRate, steps } = usual.find(({ from }) => arm.success >= from)!
  const perAttempt = arm.attempts === 0 ? 0 : arm.seconds / arm.attempts
  return {
    verdict: verdictOf(arm, contrast),
    ...{ shots: arm.shots, group, contrast, learningRate, steps },
    minutes: (2 * perAttempt * groupsPerStep * group * steps) / 60,
  }
}

/** How many groups of a size would have both solved and unsolved attempts, by each task's own rate drawn towards all. */
function contrastOf(perTask: readonly number[], size: number): number {
  const all = mean(perTask)
  return mean(
    perTask.map(rate => {
      const likely = (rate + all) / 2
      return 1 - likely ** size - (1 - likely) ** size
    }),
  )
}

function verdictOf({ success, fails, shots }: SurveyArm, contrast: number): string {
  if (success >= 0.95) return 'it can do this already: there is little left to learn'
  if (success === 0) {
    const help =
      shots === 0 ? 'show examples (--shots 2 --demonstrations FILE)' : 'show more examples'
    return fails.format > fails.strategy
      ? `never solved, mostly for its form: ${help}`
      : `never solved, though its form is right: make the task easier, or ${help}`
  }
  if (contrast < 0.2)
    return 'seldom solved: few groups have contrast, so that most attempts teach nothing'
  return 'worth training'
}
