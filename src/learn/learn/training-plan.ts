import type { Task } from '../../base/core/environment.ts'
import { seedOf } from '../../base/math/random.ts'
import type { OnUpdate } from '../../run/run/pause.ts'
import type { EnvironmentOf } from '../../run/tasks/mixed-tasks.ts'
import type { TaskSampler } from '../../run/tasks/sample-tasks.ts'
import type { Evaluation, EvaluationStrategy } from './held-out.ts'
import type { OpenFeed } from './steps/feed.ts'
import type { StepRecord } from './steps/step-record.ts'
import type { TrainingState } from './training-state.ts'

/** How long and on what a policy trains. */
export interface TrainingPlan<Data = unknown> {
  readonly tasks: TaskSampler<Data>
  readonly heldOut: readonly Task<Data>[]
  /** Whose task each is, if several environments are learned at once. */
  readonly environmentOf?: EnvironmentOf
  /** The environment's split that the held-out tasks were made of. */
  readonly heldOutSplit?: string
  readonly steps: number
  readonly tasksPerStep: number
  /** Steps in a row that leave the weights as they are, after which training ends; 0: it never does. */
  readonly patience: number
  /** Steps between evaluations; before the first step and after the last there is always one. */
  readonly evaluateEvery?: number
  /** Whether training goes on while held-out tasks are measured. @default false */
  readonly evaluateBeside?: boolean
  /** Whether held-out tasks are attempted as chains or as training rolls. @default chains in place of trees */
  readonly evaluateStrategy?: EvaluationStrategy
  /** The temperature of held-out attempts. @default that of training attempts */
  readonly evaluateTemperature?: number
  /** Steps between checkpoints; the start and the end are always kept. */
  readonly checkpointEvery: number
  /** The reward from which on a task counts as solved. */
  readonly successAt: number
  /** Extra tasks per task of a step, to replace groups that filters drop. */
  readonly refill: number
  /** Importance weights of tokens, for trainers that do not make them themselves. */
  readonly importance?: readonly string[]
  /** How many steps old training data may be; 0 rolls and learns in turn. */
  readonly maxStaleness?: number
  /** Most steps that rolling may be ahead of learning. @default maxStaleness */
  readonly lookAhead?: number
  /** What happens to samples under way when the weights change, if rolling runs ahead. @default 'abort' */
  readonly onUpdate?: OnUpdate
  /** Who makes the groups. @default they are rolled here, from the tasks */
  readonly feed?: OpenFeed
  /** Seconds, as they pass. @default those of this machine */
  readonly clock?: () => number
  /** Where an interrupted run goes on from. */
  readonly from?: TrainingState
  /** The run folder; without one nothing is kept. */
  readonly out?: string
  readonly onStep?: (record: StepRecord) => void
  /** Asked after every step; the first that is enough is the last. @default only the number of steps ends it */
  readonly isEnough?: (record: StepRecord) => boolean
  readonly onEvaluation?: (evaluation: Evaluation, step: number) => void
}

/** A seed of its own for each step and evaluation. */
export function seedFor(
  { seed = 0 }: { readonly seed?: number },
  kind: string,
  step: number,
): number {
  return seedOf(seed, kind, step).low >>> 1
}
