import type { Trainer } from '../../base/core/trainer.ts'
import type {
  AttemptOptions,
  GroupOptions,
  OptionsOf,
  RunOptions,
} from '../../run/run/roll-options.ts'
import { optionsOf } from '../../run/run/roll-options.ts'
import type { Settings } from '../../run/settings/settings.ts'
import type { TaskSource } from '../../run/tasks/tasks.ts'
import type { EmbeddedTrainerOptions } from './embedded-trainer.ts'
import type { TrainingPlan } from './training-plan.ts'

/** Options that take more than their setting: your own, or parts that are opened already. */
interface Own<Data>
  extends Pick<EmbeddedTrainerOptions, 'learningRate' | 'loss' | 'lossOptions' | 'entropy'>,
    Pick<TrainingPlan<Data>, 'onStep' | 'isEnough' | 'onEvaluation'> {
  /** What learns: a name as on the command line, or an opened one, which is left open. @default 'embedded' */
  readonly trainer?: Trainer | string
  /** Tasks to evaluate on, or how many. @default a split made for it, else a fifth of the tasks */
  readonly heldOut?: TaskSource<Data>
}

/** How long and how a policy learns. */
export interface LearningOptions<Data = unknown>
  extends Own<Data>,
    Omit<
      OptionsOf<'train'>,
      keyof Own<Data> | Exclude<keyof AttemptOptions, 'out' | 'stepHistory'> | NotLearnt
    >,
    Pick<RunOptions, 'resumes' | 'config' | 'tell'> {}

/** Options of groups that a trainer need not know. */
type NotLearnt = Exclude<
  keyof GroupOptions,
  'refill' | 'klPenalty' | 'klIn' | 'proximal' | 'importance' | 'reference' | 'teacher'
>

/** How a policy is trained. Only the policy has to be named. */
export interface TrainOptions<Data = unknown>
  extends RunOptions,
    Omit<OptionsOf<'train'>, keyof Own<Data>>,
    Own<Data> {}

/** The options that settings make. */
export function trainOptionsOf(values: Settings): TrainOptions {
  return { ...optionsOf('train', values), entropy: values.entropyBonus }
}
