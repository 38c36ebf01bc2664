import type { Seed } from '../../base/math/random.ts'
import type { AdapterShape } from './adapter.ts'
import type { CompiledKernels } from './engine/webassembly.ts'
import type { ModelShape } from './shape.ts'
import type { Tensor } from './tensor.ts'

/** Which compiled kernels a model runs on; equal bits are promised per kernel. */
export type Kernel = 'plain' | 'relaxed-fma'

/** What computes: the processor, the graphics card, or the card if there is one that is faster. */
export type DeviceName = 'cpu' | 'gpu' | 'auto'

/** What the thread that owns a model is started with. */
export interface OwnerStart {
  readonly kind: 'owner'
  readonly module: CompiledKernels
  readonly threads: number
  readonly device: DeviceName
  readonly shape: ModelShape
  /** Fresh weights from a seed, those of a checkpoint, or of a pretrained model that the owner reads itself. */
  readonly weights:
    | { readonly kind: 'seed'; readonly seed: number }
    | { readonly kind: 'tensors'; readonly tensors: readonly Tensor[] }
    | { readonly kind: 'pretrained'; readonly path: string }
}

/** The factors of an adapter: fresh ones from a seed, or those of a checkpoint. */
export interface AdapterOrder {
  readonly shape: AdapterShape
  readonly factors: { readonly seed: number } | { readonly tensors: readonly Tensor[] }
}

/** A sample as the owner is asked for it: everything stated, everything checked. */
export interface SampleOrder {
  readonly prompt: Int32Array
  readonly maxTokens: number
  readonly temperature: number
  readonly topP: number
  readonly topK: number
  readonly minP: number
  readonly stop: readonly number[]
  readonly seed: Seed
  readonly session?: string
  readonly topLogprobs: number
  readonly stream: boolean
}

/** A row to train on, or to score. */
export interface RowOrder {
  readonly ids: Int32Array
  /** 1 for each token whose log-probability is wanted; never the first. */
  readonly mask: Uint8Array
  readonly temperature: number
}

/** The numbers of an AdamW step, all stated. */
export interface UpdateOrder {
  readonly learningRate: number
  readonly clip: number
  readonly weightDecay: number
  readonly beta1: number
  readonly beta2: number
  readonly epsilon: number
  readonly warmup: number
}

/** The optimiser's memory: first and second moments and the number of steps made. */
export interface OptimizerState {
  readonly steps: number
  readonly version: number
  readonly moment1: readonly Tensor[]
  readonly moment2: readonly Tensor[]
}

/** What the main thread says to the owner. */
export type ToOwner =
  | { readonly kind: 'sample'; readonly id: number; readonly order: SampleOrder }
  | { readonly kind: 'abort'; readonly id: number }
  | { readonly kind: 'score'; readonly id: number; readonly rows: readonly RowOrder[] }
  | { readonly kind: 'gradient'; readonly id: number; readonly rows: readonly RowOrder[] }
  | { readonly kind: 'backward'; readonly id: number; readonly gradients: RowGradients | undefined }
  | { readonly kind: 'update'; readonly id: number; readonly order: UpdateOrder }
  | { readonly kind: 'export'; readonly id: number }
  | {
      readonly kind: 'import'
      readonly id: number
      readonly tensors: readonly Tensor[]
      /** Their version; the next one if it is missing. */
      readonly version?: number
    }
  | { readonly kind: 'adapt'; readonly id: number; readonly adapter: AdapterOrder }
  | { readonly kind: 'export-optimizer'; readonly id: number }
  | { readonly kind: 'import-optimizer'; readonly id: number; readonly state: OptimizerState }
  | { readonly kind: 'use-threads'; readonly id: number; readonly count: number }
  | { readonly kind: 'close'; readonly id: number }

/** Log-probabilities and entropies of the masked tokens, row after row. */
export interface RowNumbers {
  readonly logprobs: Float32Array
  readonly entropies: Float32Array
  /** Tokens that were computed for them, and tokens of the rows: fewer if rows begin alike. */
  readonly computed: { readonly tokens: number; readonly of: number }
}

/** The loss's gradient with respect to `RowNumbers`, in their order. */
export interface RowGradients {
  readonly logprobs: Float32Array
  readonly entropies: Float32Array
}

/** One sampled token, as it is streamed. */
export interface TokenNews {
  readonly id: number
  readonly logprob: number
  readonly entropy: number
}

/** A finished sample. */
export interface SampleNews {
  readonly ids: Int32Array
  readonly logprobs: Float32Array
  readonly entropies: Float32Array
  readonly topLogprobs?: readonly (readonly { readonly id: number; readonly logprob: number }[])[]
  /** Why it stopped. */
  readonly finish: 'stop' | 'length' | 'abort'
  /** The version of the weights that drew all of it. */
  readonly version: number
  /** Prompt tokens whose keys and values were there already. */
  readonly cachedTokens: number
}

/** What the owner says to the main thread; several at once. */
export type FromOwner =
  /** The model is open; `device` is what computes, as people read it. */
  | { readonly kind: 'ready'; readonly device: string }
  /** Something that people should hear. */
  | { readonly kind: 'told'; readonly text: string }
  | { readonly kind: 'token'; readonly id: number; readonly token: TokenNews }
  | { readonly kind: 'sampled'; readonly id: number; readonly sample: SampleNews }
  | { readonly kind: 'numbers'; readonly id: number; readonly numbers: RowNumbers }
  | {
      readonly kind: 'updated'
      readonly id: number
      readonly gradientNorm: number
      readonly version: number
    }
  | {
      readonly kind: 'tensors'
      readonly id: number
      readonly tensors: readonly Tensor[]
      readonly version: number
    }
  | { readonly kind: 'optimizer'; readonly id: number; readonly state: OptimizerState }
  | { readonly kind: 'done'; readonly id: number; readonly version: number }
  | { readonly kind: 'failed'; readonly id: number; readonly message: string }
