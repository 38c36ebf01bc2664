import type {
  AdapterOrder,
  OptimizerState,
  RowGradients,
  RowNumbers,
  RowOrder,
  UpdateOrder,
} from '../protocol.ts'
import type { Tensor } from '../tensor.ts'
import type { Stepper } from './stepper.ts'

type Soon<T> = T | Promise<T>

/** Scores rows, sums gradients and updates what is trained. One gradient is under way at most. */
export interface Learner {
  /** Gives a model whose weights stay an adapter; a fresh one changes nothing yet. */
  adapt(order: AdapterOrder): Soon<void>
  /** Log-probabilities and entropies of the wanted tokens; `keep` prepares for `backward`. */
  forward(rows: readonly RowOrder[], options: { readonly keep: boolean }): Soon<RowNumbers>
  /** Adds the gradient of the rows that went forward last. */
  backward(gradients: RowGradients): Soon<void>
  /** One step of AdamW on the gradient added up so far, which then starts anew; gives the gradient's norm. */
  update(order: UpdateOrder): Soon<number>
  /** What is trained, as tensors of a checkpoint; nothing if nothing is. */
  tensors(): Soon<readonly Tensor[]>
  takeTensors(tensors: readonly Tensor[]): Soon<void>
  /** The optimiser's memory, to go on with later. */
  state(version: number): Soon<OptimizerState>
  takeState(state: OptimizerState): Soon<void>
}

/** What computes for a model: the threads of this processor, or a graphics card. */
export interface Engine {
  /** What computes, as people read it. */
  readonly device: string
  readonly stepper: Stepper
  readonly learner: Learner
  /** Computes on so many threads from now on. */
  useThreads(count: number): void
  close(): void
}
