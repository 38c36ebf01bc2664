import type { Call } from './call.ts'

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
