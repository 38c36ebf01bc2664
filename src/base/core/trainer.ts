import type { Call } from './call.ts'
import type { Group } from './group.ts'

/** Weights that a trainer wrote to disk, where engines can read them. */
export interface WrittenWeights {
  readonly path: string
  /** A whole model in Hugging Face's layout, or an adapter (PEFT's layout) on the one that is served. */
  readonly kind: 'model' | 'adapter'
  readonly version: number
}

/** Makes engines serve weights that a trainer wrote; samples come from them once it has ended. */
export interface WeightSync {
  update(weights: WrittenWeights, call: Call): Promise<void>
}

/** What a step of learning gave. */
export interface TrainerStep {
  /** The version of the weights after it. */
  readonly version: number
  readonly metrics: Readonly<Record<string, number>>
  /** Where the trainer wrote these weights, for engines to load; nothing if they share them. */
  readonly weights?: Pick<WrittenWeights, 'path' | 'kind'>
  /** Measures what the step changed; called once its weights are sampled from, while sampling goes on. */
  measure?(): Promise<Pick<TrainerStep, 'metrics'>>
}

/** Something that learns from weighted groups. */
export interface Trainer extends AsyncDisposable {
  readonly name: string
  step(groups: readonly Group[], call: Call): Promise<TrainerStep>
  /**
   * Makes the policy sample from what was learned last. A trainer with this method must not change
   * the sampled weights during `step`: sampling then goes on during the step if training data may be
   * stale. Without this method, sampling waits for the whole step.
   */
  publish?(call: Call): Promise<void>
  /** Writes what was learned last and all state that `load` needs to go on. */
  save(folder: string, call: Call): Promise<void>
  /** Goes on from there; samples come from these weights once it has ended. */
  load(folder: string, call: Call): Promise<Pick<TrainerStep, 'version' | 'weights'>>
}
