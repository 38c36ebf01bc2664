import * as layout from '../kernels/layout.ts'
import type {
  OptimizerState,
  RowGradients,
  RowNumbers,
  RowOrder,
  UpdateOrder,
} from '../protocol.ts'
import { cutChunks, type PlacedChunk, placeChunks, writeChunkJob } from './chunks.ts'
import type { Heap } from './heap.ts'
import { decayedRanges, fromTensors, toTensors } from './parameters.ts'
import type { Plan } from './plan.ts'
import type { Threads } from './threads.ts'
import type { Kernels } from './webassembly.ts'

/** Numbers of a parameter array that one job works on. */
const rangeNumbers = 8 * layout.NORM_BLOCK

/** What a trainer needs. */
export interface TrainerParts {
  readonly heap: Heap
  readonly plan: Plan
  readonly kernels: Kernels
  readonly threads: Threads
  /** Bytes of activations kept for the backward pass; for rows beyond that, forward runs again. */
  readonly keptBudget: number
}

/** Scores rows, sums gradients and updates the weights. One gradient is under way at most. */
export class Trainer {
  readonly #parts: TrainerParts
  readonly #jobs: number
  #chunks: readonly PlacedChunk[] = []
  #steps = 0

  constructor(parts: TrainerParts) {
    this.#parts = parts
    const { plan, heap } = parts
    const ranges = Math.ceil(plan.parameterCount / rangeNumbers) + 4 * (plan.shape.layers + 1)
    this.#jobs = heap.take(ranges * layout.JOB_BYTES)
  }

  /** Log-probabilities and entropies of the wanted tokens; `keep` prepares for `backward`. */
  forward(rows: readonly RowOrder[], { keep }: { keep: boolean }): RowNumbers {
    const { heap, kernels, threads, keptBudget } = this.#parts
    const chunks = placeChunks(heap, cutChunks(rows), {
      budget: keep ? keptBudget : 0,
      keptBytes: ({ tokens, wanted }) => kernels.keptBytes(tokens, wanted, 1),
    })
    threads.run(chunks.map(chunk => chunk.job))
    this.#chunks = keep ? chunks : []
    return readNumbers(heap, chunks)
  }

  /** Adds the gradient of the rows that went forward last. */
  backward(gradients: RowGradients): void {
    const { heap, plan, threads } = this.#parts
    const chunks = this.#chunks
    this.#chunks = []
    if (chunks.length === 0) return
    writeGradients(heap, chunks, gradients)
    const lanes = Math.min(layout.LANES, chunks.length)
    const laneNumbers = plan.parameterCount
    chunks.forEach((chunk, index) => {
      const lane = plan.lanes + (index % lanes) * laneNumbers * 4
      const next = chunks[index + lanes]?.job ?? 0
      writeChunkJob(heap, chunk, { kind: layout.JOB_BACKWARD, lane, next })
    })
    threads.run(chunks.slice(0, lanes).map(chunk => chunk.job))
    threads.run(this.#rangeJobs({ kind: layout.JOB_REDUCE, lanes }))
  }

  /** One step of AdamW on the gradient added up so far, which then starts anew. */
  update(order: UpdateOrder): number {
    const { heap, plan, threads } = this.#parts
    const norm = this.#gradientNorm()
    if (!Number.isFinite(norm)) {
      const start = plan.gradient / 4
      heap.f32.fill(0, start, start + plan.parameterCount)
      throw new Error(
        'The gradient is not finite; it was dropped and the weights stay as they are.',
      )
    }
    this.#steps++
    threads.run(this.#updateJobs(order, norm > order.clip ? order.clip / norm : 1))
    this.pack()
    return norm
  }

  /** Lays the weights out for the kernels, after they changed. */
  pack(): void {
    const { heap, plan, threads } = this.#parts
    const jobs = Array.from({ length: plan.shape.layers + 1 }, (_, layer) => {
      const address = this.#jobs + layer * layout.JOB_BYTES
      heap.i32[address / 4] = layout.JOB_PACK
      heap.i32[(address + layout.PACK_LAYER) / 4] = layer
      return address
    })
    threads.run(jobs)
  }

  /** The optimiser's memory, to go on with later. */
  exportState(version: number): OptimizerState {
    const { shape } = this.#parts.plan
    const { moment1, moment2 } = this.#moments()
    const moments = { moment1: toTensors(moment1, shape), moment2: toTensors(moment2, shape) }
    return { steps: this.#steps, version, ...moments }
  }

  /** Goes on from an exported state. */
  importState(state: OptimizerState): void {
    const { shape } = this.#parts.plan
    const { moment1, moment2 } = this.#moments()
    fromTensors(moment1, shape, state.moment1)
    fromTensors(moment2, shape, state.moment2)
    this.#steps = state.steps
  }

  #moments(): { moment1: Float32Array; moment2: Float32Array } {
    const { heap, plan } = this.#parts
    const array = (address: number) =>
      heap.f32.subarray(address / 4, address / 4 + plan.parameterCount)
    return { moment1: array(plan.moment1), moment2: array(plan.moment2) }
  }

  #gradientNorm(): number {
    const { heap, plan, threads } = this.#parts
    threads.run(this.#rangeJobs({ kind: layout.JOB_NORM, lanes: 0 }))
    const blocks = Math.ceil(plan.parameterCount / layout.NORM_BLOCK)
    const sums = heap.f64.subarray(plan.normSums / 8, plan.normSums / 8 + blocks)
    return Math.sqrt(sums.reduce((total, sum) => total + sum, 0))
  }

  #rangeJobs({ kind, lanes }: { kind: number; lanes: number }): number[] {
    const { plan } = this.#parts
    return this.#writeRanges([{ start: 0, end: plan.parameterCount }], at => {
      this.#parts.heap.i32[at] = kind
      this.#parts.heap.i32[at + layout.RANGE_LANES / 4] = lanes
    })
  }

  #updateJobs(order: UpdateOrder, scale: number): number[] {
    const { heap, plan } = this.#parts
    const rate = order.learningRate * Math.min(1, this.#steps / order.warmup)
    const decayed = decayedRanges(plan.shape)
    const starts = decayed.map(range => ({ ...range, decay: order.weightDecay }))
    const norms = decayed.map((range, index) => {
      return { start: range.end, end: decayed[index + 1]?.start ?? plan.parameterCount, decay: 0 }
    })
    const ranges = [...starts, ...norms].filter(range => range.end > range.start)
    return this.#writeRanges(ranges, (at, { decay }) => {
      heap.i32[at] = layout.JOB_UPDATE
      heap.f32[at + layout.UPDATE_RATE / 4] = rate
      heap.f32[at + layout.UPDATE_DECAY / 4] = decay
      heap.f32[at + layout.UPDATE_BETA_1 / 4] = order.beta1
      heap.f32[at + layout.UPDATE_BETA_2 / 4] = order.beta2
      heap.f32[at + layout.UPDATE_EPSILON / 4] = order.epsilon
      heap.f32[at + layout.UPDATE_SCALE / 4] = scale
      heap.f32[at + layout.UPDATE_CORRECTION_1 / 4] = 1 / (1 - power(order.beta1, this.#steps))
      heap.f32[at + layout.UPDATE_CORRECTION_2 / 4] = 1 / (1 - power(order.beta2, this.#steps))
    })
  }

  /** Cuts ranges of numbers into jobs; `write` fills in the rest of each. */
  #writeRanges<R extends { start: number; end: number }>(
    ranges: readonly R[],
    write: (at: number, range: R) => void,
  ): number[] {
    const { heap } = this.#parts
    const jobs: number[] = []
    for (const range of ranges) {
      for (let start = range.start; start < range.end; start += rangeNumbers) {
        const address = this.#jobs + jobs.length * layout.JOB_BYTES
        const bytes = Math.min(rangeNumbers, range.end - start) * 4
        heap.i32[(address + layout.RANGE_START) / 4] = start * 4
        heap.i32[(address + layout.RANGE_BYTES) / 4] = bytes
        write(address / 4, range)
        jobs.push(address)
      }
    }
    return jobs
  }
}

/** base^exponent by squaring: `Math.pow` may give other bits in other versions. */
function power(base: number, exponent: number): number {
  let result = 1
  let square = base
  for (let rest = exponent; rest > 0; rest = Math.floor(rest / 2)) {
    if (rest % 2 === 1) result *= square
    square *= square
  }
  return result
}

function readNumbers(heap: Heap, chunks: readonly PlacedChunk[]): RowNumbers {
  const wanted = chunks.reduce((sum, chunk) => sum + chunk.wanted, 0)
  const logprobs = new Float32Array(wanted)
  const entropies = new Float32Array(wanted)
  let index = 0
  eachWanted(chunks, at => {
    logprobs[index] = heap.f32[at + layout.ROW_LOGPROB / 4]!
    entropies[index++] = heap.f32[at + layout.ROW_ENTROPY / 4]!
  })
  return { logprobs, entropies }
}

function writeGradients(
  heap: Heap,
  chunks: readonly PlacedChunk[],
  { logprobs, entropies }: RowGradients,
): void {
  let index = 0
  eachWanted(chunks, at => {
    heap.f32[at + layout.ROW_LOGPROB_GRADIENT / 4] = logprobs[index]!
    heap.f32[at + layout.ROW_ENTROPY_GRADIENT / 4] = entropies[index++]!
  })
}

function eachWanted(chunks: readonly PlacedChunk[], visit: (at: number) => void): void {
  for (const { rowList, wanted } of chunks) {
    for (let row = 0; row < wanted; row++) visit((rowList + row * layout.ROW_BYTES) / 4)
  }
}
