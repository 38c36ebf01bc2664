import { readFile } from 'node:fs/promises'
import { availableParallelism } from 'node:os'
import { join } from 'node:path'
import { isMainThread } from 'node:worker_threads'
import { isGgufPath } from '@espalier/text/gguf'
import { SettingError } from '../../base/core/names/setting-error.ts'
import type { Seed } from '../../base/math/random.ts'
import type { AdapterShape } from './adapter.ts'
import { checkCompanion, isTrainedWhole, parseObject, readCheckpoint } from './checkpoint.ts'
import { checkTensors } from './engine/frozen.ts'
import type { MemoryWanted } from './engine/memory.ts'
import { loadKernel } from './kernel-file.ts'
import { type Fitting, fitContext } from './pretrained/fit.ts'
import { openWeights } from './pretrained/open-weights.ts'
import { isPeft, readPeft } from './pretrained/peft.ts'
import { readPretrained } from './pretrained/source.ts'
import type { DeviceName, Kernel, SampleNews, TokenNews } from './protocol.ts'
import { startModel } from './remote.ts'
import { checkShape, type ModelShape } from './shape.ts'
import type { Tensor } from './tensor.ts'

export type { DeviceName, Kernel } from './protocol.ts'
export type { ModelShape } from './shape.ts'

/** A request to continue a prompt. */
export interface EmbeddedSampleRequest {
  readonly prompt: Int32Array
  /** The most tokens to sample; the model's context may end it sooner, as `length` too. */
  readonly maxTokens: number
  /** 0 takes the likeliest id; log-probabilities are then those of temperature 1. */
  readonly temperature: number
  /** @default 1 */
  readonly topP?: number
  /** 0 means all. @default 0 */
  readonly topK?: number
  /** @default 0 */
  readonly minP?: number
  /** Ids that end the sample; the one that did is its last id. */
  readonly stop: readonly number[]
  /** The random number of a token is a function of this and of the token's position alone. */
  readonly seed: number | Seed
  /** Keeps the keys and values of its last request as long as space allows. */
  readonly session?: string
  /** How many likeliest ids to report per token. @default 0 */
  readonly topLogprobs?: number
  /** Sees each token as it is sampled. */
  readonly onToken?: (token: TokenNews) => void
}

/** What was sampled. Log-probabilities and entropies are tempered, before top-p, top-k and min-p. */
export type EmbeddedSample = SampleNews

/** A row to train on: `mask` is 1 for each trained token, never for the first. */
export interface TrainingRow {
  readonly ids: Int32Array
  readonly mask: Uint8Array
  /** The temperature at which the row was sampled. */
  readonly temperature: number
}

/**
 * Log-probabilities and entropies of rows laid end to end, as the losses of `src/base/math` take them:
 * row r holds the tokens offsets[r] .. offsets[r+1]; numbers are 0 if the mask is 0.
 */
export interface TokenNumbers {
  readonly offsets: Int32Array
  readonly mask: Uint8Array
  readonly logprobs: Float64Array
  readonly entropies: Float64Array
  /** Tokens that went through the model, and those of the rows: fewer if rows begin alike. */
  readonly computed: { readonly tokens: number; readonly of: number }
}

/** The gradient of a loss with respect to `TokenNumbers`, token by token; masked-out ones are not read. */
export interface LossGradient {
  readonly logprobGradient: Float64Array
  readonly entropyGradient?: Float64Array
}

/** The numbers of an AdamW step. */
export interface UpdateOptions {
  readonly learningRate: number
  /** The largest gradient norm; a longer gradient is shortened to it. */
  readonly clip: number
  /** Norms are never decayed. @default 0 */
  readonly weightDecay?: number
  /** @default [0.9, 0.95] */
  readonly betas?: readonly [number, number]
  /** @default 1e-8 */
  readonly epsilon?: number
  /** Steps over which the rate rises to its full height. @default 1 */
  readonly warmup?: number
}

/** The transformer that runs inside Espalier, on threads of its own. */
export interface EmbeddedModel extends AsyncDisposable {
  readonly shape: ModelShape
  readonly kernel: Kernel
  readonly threads: number
  /** What computes, as people read it. */
  readonly device: string
  /** What was asked to compute. */
  readonly wanted: DeviceName
  /** Tokenizer and template files that came with the model and go with its checkpoints. */
  readonly files: ReadonlyMap<string, Uint8Array>
  /** Bytes of memory that a pretrained model takes on the processor. */
  readonly memory: number | undefined
  /** Where a pretrained model lies; undefined for one that is trained whole. */
  readonly base: string | undefined
  /** The adapter that a pretrained model has by now. */
  readonly adapter: AdapterShape | undefined
  /** The version of the weights: raised by every update and every load. */
  version(): number
  /** Continues a prompt. Aborting resolves with what was sampled so far. */
  sample(request: EmbeddedSampleRequest, call: ModelCall): Promise<EmbeddedSample>
  /** Log-probabilities and entropies of ids[from], ids[from + 1], …; `from` is at least 1. */
  score(
    ids: Int32Array,
    from: number,
    options: { readonly temperature: number },
    call: ModelCall,
  ): Promise<{ readonly logprobs: Float32Array; readonly entropies: Float32Array }>
  /**
   * Goes forward over rows, asks `loss` for its gradient, goes backward and adds the result to the
   * gradient so far. Gives what `loss` gave.
   */
  gradient<G extends LossGradient>(
    rows: readonly TrainingRow[],
    loss: (numbers: TokenNumbers) => G,
  ): Promise<G>
  /** Updates the weights by the gradient so far, after samples under way have ended. */
  applyGradient(options: UpdateOptions): Promise<{ gradientNorm: number; version: number }>
  /** The current weights with their version, for `take` of another model of the same shape. */
  weights(): Promise<ModelWeights>
  /**
   * Gives a pretrained model an adapter, which is what is trained, saved and loaded from then on. Its
   * first factors are drawn by the seed, the second ones are 0: at first it changes nothing.
   */
  adapt(adapter: AdapterShape, options?: { readonly seed?: number }): Promise<void>
  /** Replaces all weights at once, and the version with them, after running samples have ended. */
  take(weights: ModelWeights): Promise<void>
  /** Computes on so many of its threads from now on; results do not depend on it. */
  useThreads(count: number): Promise<void>
  /** Writes config, weights and companion files to a folder. */
  save(folder: string): Promise<void>
  /** Takes over the weights of a folder of the same shape. */
  load(folder: string): Promise<{ version: number }>
  /** Writes the optimiser's memory and the version beside the weights. */
  saveOptimizer(folder: string): Promise<void>
  /** Goes on with what `saveOptimizer` wrote, version included. */
  loadOptimizer(folder: string): Promise<void>
}

/** All weights of a model at one time; of a pretrained one those of its adapter. */
export interface ModelWeights {
  readonly version: number
  readonly tensors: readonly Tensor[]
}

/** Options of everything asynchronous: the signal that stops it. */
export interface ModelCall {
  readonly signal: AbortSignal
}

/** Where a model comes from: fresh weights from a seed, or a folder. */
export type ModelSource =
  | {
      readonly shape: ModelShape
      readonly seed: number
      readonly files?: ReadonlyMap<string, Uint8Array>
    }
  | { readonly folder: string }

/** How a model runs; results do not depend on the threads. */
export interface ModelSettings {
  /** @default the processor's, at most 8; 1 in a thread that rolls */
  readonly threads?: number
  /** @default the fastest that this Node can run */
  readonly kernel?: Kernel
  /** What computes for a pretrained model; `auto` takes a graphics card if there is one. @default 'cpu' */
  readonly device?: DeviceName
  /** The most tokens of a sequence of a pretrained model. @default 8192, or what it was trained for */
  readonly context?: number
}

/** Opens a model on threads of its own; dispose it to end them. */
export async function openModel(
  source: ModelSource,
  settings: ModelSettings = {},
): Promise<EmbeddedModel> {
  // Threads that roll have a model each, and a core for it.
  const { threads = isMainThread ? Math.min(availableParallelism(), 8) : 1 } = settings
  if (!Number.isSafeInteger(threads) || threads < 1 || threads > 64) {
    throw new RangeError(`A model runs on 1 to 64 threads, not ${threads}.`)
  }
  const { shape: wanted, files, weights, peft } = await readSource(source, settings)
  const { kernel, module } = await loadKernel(settings.kernel)
  const isFixed = settings.context !== undefined
  const { device = 'cpu' } = settings
  if (device === 'gpu' && weights.kind !== 'pretrained') {
    throw new SettingError('--device gpu: this model is small, and runs on the processor')
  }
  const fitting =
    weights.kind === 'pretrained' && device !== 'gpu'
      ? fitPretrained({ module, shape: wanted, threads }, { path: weights.path, isFixed })
      : { shape: wanted, memory: undefined }
  const model = await startModel(
    { kind: 'owner', module, threads, device, shape: fitting.shape, weights },
    { kernel, files, memory: fitting.memory?.total },
  )
  if (peft !== undefined) await closeIfFails(model, () => model.load(peft))
  return model
}

/** Opens a second model, on as many threads of its own, with the current weights and version of another. */
export async function copyModel(model: EmbeddedModel): Promise<EmbeddedModel> {
  const { shape, threads, wanted: device, files, base, adapter } = model
  const current = await model.weights()
  const { kernel, module } = await loadKernel(model.kernel)
  const weights =
    base === undefined
      ? ({ kind: 'tensors', tensors: current.tensors } as const)
      : ({ kind: 'pretrained', path: base } as const)
  const copy = await startModel(
    { kind: 'owner', module, threads, device, shape, weights },
    { kernel, files },
  )
  if (adapter) await copy.adapt(adapter)
  if (adapter || base === undefined) await copy.take(current)
  return copy
}

/** Checks the list of a model's tensors and its memory before any is taken. */
function fitPretrained(
  wanted: Omit<MemoryWanted, 'type'>,
  { path, isFixed }: { readonly path: string; readonly isFixed: boolean },
): Fitting {
  using file = openWeights(path)
  const type = checkTensors(file, wanted.shape)
  return fitContext({ ...wanted, type }, { source: path, isFixed })
}

async function closeIfFails(model: EmbeddedModel, work: () => Promise<unknown>): Promise<void> {
  try {
    await work()
  } catch (cause) {
    await model[Symbol.asyncDispose]()
    throw cause
  }
}

async function readSource(source: ModelSource, { context }: ModelSettings) {
  if ('folder' in source) {
    const { folder } = source
    const peft = isPeft(folder) ? folder : undefined
    const path = peft === undefined ? folder : (await readPeft(folder)).base
    if (peft === undefined && (await isWhole(folder))) {
      const { shape, tensors, files } = await readCheckpoint(folder)
      return { shape, files, weights: { kind: 'tensors', tensors } as const }
    }
    const { shape, files } = await readPretrained(path, { context })
    return { shape, files, weights: { kind: 'pretrained', path } as const, peft }
  }
  const { seed, files = new Map<string, Uint8Array>() } = source
  for (const name of files.keys()) checkCompanion(name)
  return { shape: checkShape(source.shape), files, weights: { kind: 'seed', seed } as const }
}

async function isWhole(folder: string): Promise<boolean> {
  if (isGgufPath(folder)) return false
  const path = join(folder, 'config.json')
  return isTrainedWhole(parseObject(await readFile(path, 'utf8'), path))
}
