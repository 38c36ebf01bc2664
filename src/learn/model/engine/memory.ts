import type { AdapterShape } from '../adapter.ts'
import type { ModelShape } from '../shape.ts'
import type { WeightType } from '../weights-file.ts'
import { placeAdapter } from './adapted.ts'
import { Heap } from './heap.ts'
import { fixedOffsets, makePlan, panelOffsets } from './plan.ts'
import { takeStepMemory } from './step.ts'
import { type CompiledKernels, instantiate } from './webassembly.ts'

/** Bytes of the key-value cache of a pretrained model, reserved but not touched before they are needed. */
export const frozenCacheBytes = 512 * 2 ** 20

/** The most memory of a model, whatever the machine has: what its kernels can address. */
export const addressable = 2 ** 32 - 65_536

/** Bytes that a pretrained model wants, known before anything of it is read. */
export interface ModelMemory {
  readonly weights: number
  /** Keys and values of tokens. */
  readonly cache: number
  /** What threads compute with, and logits. */
  readonly work: number
  /** Factors, gradients and the optimiser's memory. */
  readonly adapter: number
  readonly total: number
}

/** What memory is wanted for. */
export interface MemoryWanted {
  readonly module: CompiledKernels
  readonly shape: ModelShape
  readonly type: WeightType
  readonly threads: number
  readonly adapter?: AdapterShape
}

/** Counts the memory of a pretrained model by planning it without taking any. */
export function memoryOf({ module, shape, type, threads, adapter }: MemoryWanted): ModelMemory {
  const heap = new Heap({ isDry: true })
  const kernels = instantiate(module, heap.memory)
  const plan = makePlan(heap, kernels, { shape, threads, cacheBytes: frozenCacheBytes, type })
  takeStepMemory(heap, plan)
  const opened = heap.taken
  if (adapter) placeAdapter(heap, plan, adapter)
  const width = type === 'bf16' ? 2 : 4
  const own = shape.family!.isTied ? 0 : shape.vocabulary * shape.width
  const weights = (panelOffsets(shape).total + own) * width + fixedOffsets(shape).total * 4
  const cache = plan.blocks * plan.blockBytes
  const total = heap.taken
  return { weights, cache, work: opened - weights - cache, adapter: total - opened, total }
}
