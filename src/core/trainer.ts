import type { Call } from './call.ts'
import type { Group } from './group.ts'
import type { WrittenWeights } from './weight-sync.ts'

/** What a step of learning gave. */
export interface TrainerStep {
  /** The version of the weights after it. */
  readonly version: number
  readonly metrics: Readonly<Record<string, number>>
  /** Where the trainer wrote these weights, for engines to load; nothing where they share them. */
  readonly weights?: Pick<WrittenWeights, 'path' | 'kind'>
}

/** Something that learns from weighted groups. */
export interface Trainer extends AsyncDisposable {
  readonly name: string
  step(groups: readonly Group[], call: Call): Promise<TrainerStep>
  /** Writes weights and all state that `load` needs to go on. */
  save(folder: string, call: Call): Promise<void>
  load(folder: string, call: Call): Promise<Pick<TrainerStep, 'version' | 'weights'>>
}
