import type { Trainer } from '../../base/core/trainer.ts'
import type { AttemptOptions, GroupOptions } from '../../run/run/roll-options.ts'
import { optionsOf } from '../../run/run/roll-options.ts'
import type { Settings } from '../../run/settings/settings.ts'
import type { TaskSource } from '../../run/tasks/tasks.ts'
import type { EmbeddedTrainerOptions } from './embedded-trainer.ts'
import type { TrainingPlan } from './training.ts'

/** How long and how a policy learns. */
export interface LearningOptions<Data = unknown>
  extends Pick<
      TrainingPlan<Data>,
      | 'evaluateEvery'
      | 'evaluateStrategy'
      | 'onStep'
      | 'isEnough'
      | 'onEvaluation'
      | 'maxStaleness'
      | 'onUpdate'
    >,
    Pick<
      EmbeddedTrainerOptions,
      'learningRate' | 'loss' | 'lossOptions' | 'epochs' | 'updates' | 'entropy'
    >,
    Pick<AttemptOptions, 'out' | 'resumes' | 'config' | 'tell'>,
    Pick<
      GroupOptions,
      'refill' | 'klPenalty' | 'klIn' | 'proximal' | 'importance' | 'reference' | 'teacher'
    > {
  /** What learns: a name as on the command line, or an opened one, which is left open. @default 'embedded' */
  readonly trainer?: Trainer | string
  /** Training steps. @default 60 */
  readonly steps?: number
  /** Tasks per training step. @default 32 */
  readonly tasksPerStep?: number
  /** How tasks are drawn: `uniform`, `band`, `thompson` or `progress`, with options. @default 'uniform' */
  readonly sampleTasks?: string
  /** Tasks to evaluate on, or how many. @default a split made for it, else a fifth of the tasks */
  readonly heldOut?: TaskSource<Data>
  /** How much a token's advantage rises per nat that the task's oracle prompt adds to its log-probability. @default 0 */
  readonly oracleBonus?: number
  /** Steps between checkpoints. @default 20 */
  readonly checkpointEvery?: number
  /** The reward from which on a task counts as solved. @default 1 */
  readonly successAt?: number
}

/** How a policy is trained. Only the policy has to be named. */
export interface TrainOptions<Data = unknown>
  extends Omit<AttemptOptions, 'unfinished'>,
    GroupOptions,
    LearningOptions<Data> {}

/** The options that settings make. */
export function trainOptionsOf(values: Settings): TrainOptions {
  return { ...optionsOf('train', values), entropy: values.entropyBonus }
}
