import * as layout from '../kernels/layout.ts'
import type {
  OptimizerState,
  RowGradients,
  RowNumbers,
  RowOrder,
  UpdateOrder,
} from '../protocol.ts'
import { type Cut, cutChunks } from './chunks.ts'
import type { Heap } from './heap.ts'
import { writeBackward, writeStages } from './job.ts'
import { decayedRanges, fromTensors, toTensors } from './parameters.ts'
import { type PlacedChunk, placeChunks } from './placed.ts'
import type { Plan, TrainedArrays } from './plan.ts'
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
  /** Bytes of activations kept for the backward pass; beyond that, layers are computed again. */
  readonly keptBudget: number
}

/** Rows that went forward. */
interface Forwarded {
  readonly chunks: readonly PlacedChunk[]
  readonly numbers: Cut['numbers']
  /** Whether chunks read what others computed, so that they go stage by stage. */
  readonly isStaged: boolean
  readonly keep: number
}

/** Scores rows, sums gradients and updates what is trained. One gradient is under way at most. */
export class Trainer {
  readonly #parts: TrainerParts
  #trained: TrainedArrays | undefined
  #jobs = 0
  #kept: Forwarded | undefined
  #steps = 0

  constructor(parts: TrainerParts) {
    this.#parts = parts
  }

  /** What is trained, if anything is. */
  get trained(): TrainedArrays | undefined {
    return this.#trained
  }

  /** Trains these arrays from now on. */
  train(trained: TrainedArrays): void {
    const { plan, heap } = this.#parts
    const ranges = Math.ceil(trained.count / rangeNumbers) + 4 * (plan.shape.layers + 1)
    this.#trained = trained
    this.#jobs = heap.take(ranges * layout.JOB_BYTES)
    this.#steps = 0
  }

  /** Log-probabilities and entropies of the wanted tokens; `keep` prepares for `backward`. */
  forward(rows: readonly RowOrder[], { keep: keeps }: { keep: boolean }): RowNumbers {
    const { heap, plan, keptBudget: budget } = this.#parts
    const { chunks: cut, numbers, tokens, rowTokens } = cutChunks(rows, plan.isFrozen)
    const { chunks, keep } = placeChunks(cut, { ...this.#parts, keeps, budget })
    const isStaged = chunks.some(({ spans }) => spans[0]!.parent !== undefined)
    const forwarded = { chunks, numbers, isStaged, keep }
    const jobs = chunks.map(chunk => chunk.job)
    this.#runStages(forwarded, { jobs, last: plan.shape.layers, step: 1 })
    this.#kept = keeps ? forwarded : undefined
    return { ...readNumbers(heap, forwarded), computed: { tokens, of: rowTokens } }
  }

  /** Runs stages of jobs, up to `last`: `step` of them at a time where chunks depend on each other. */
  #runStages(
    { chunks, isStaged }: Forwarded,
    { jobs, last, step }: { jobs: readonly number[]; last: number; step: number },
  ): void {
    const { heap, threads } = this.#parts
    const size = isStaged ? step : last + 1
    for (let first = 0; first <= last; first += size) {
      const end = Math.min(first + size - 1, last)
      for (const { job } of chunks) writeStages(heap, job, first, end)
      threads.run(jobs)
    }
  }

  /** Adds the gradient of the rows that went forward last. */
  backward(gradients: RowGradients): void {
    const { heap, plan, threads } = this.#parts
    const forwarded = this.#kept
    this.#kept = undefined
    if (!forwarded || forwarded.chunks.length === 0) return
    const trained = this.#needTrained()
    writeGradients(heap, forwarded, gradients)
    const { chunks, keep } = forwarded
    const lanes = Math.min(layout.LANES, chunks.length)
    chunks.forEach(({ job }, index) => {
      const lane = trained.lanes + (index % lanes) * trained.count * 4
      writeBackward(heap, job, { lane, next: chunks[index + lanes]?.job ?? 0 })
    })
    const jobs = chunks.slice(0, lanes).map(({ job }) => job)
    // Computing again wants two rounds per layer: keys and values first, then attention over them.
    const step = keep === layout.KEEP_ALL ? 2 : 1
    this.#runStages(forwarded, { jobs, last: 2 * plan.shape.layers, step })
    threads.run(this.#rangeJobs({ kind: layout.JOB_REDUCE, lanes }))
  }

  #needTrained(): TrainedArrays {
    if (this.#trained) return this.#trained
    throw new Error('Nothing of this model is trained: give it an adapter first.')
  }

  /** One step of AdamW on the gradient added up so far, which then starts anew. */
  update(order: UpdateOrder): number {
    const { heap, threads } = this.#parts
    const { gradient, count } = this.#needTrained()
    const norm = this.#gradientNorm()
    if (!Number.isFinite(norm)) {
      heap.f32.fill(0, gradient / 4, gradient / 4 + count)
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
    if (plan.isFrozen) return
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
    const { places } = this.#needTrained()
    const { moment1, moment2 } = this.#moments()
    const moments = { moment1: toTensors(moment1, places), moment2: toTensors(moment2, places) }
    return { steps: this.#steps, version, ...moments }
  }

  /** Goes on from an exported state. */
  importState(state: OptimizerState): void {
    const { places } = this.#needTrained()
    const { moment1, moment2 } = this.#moments()
    fromTensors(moment1, places, state.moment1)
    fromTensors(moment2, places, state.moment2)
    this.#steps = state.steps
  }

  #moments(): { moment1: Float32Array; moment2: Float32Array } {
    const { heap } = this.#parts
    const { moment1, moment2, count } = this.#needTrained()
    const array = (address: number) => heap.f32.subarray(address / 4, address / 4 + count)
    return { moment1: array(moment1), moment2: array(moment2) }
  }

  #gradientNorm(): number {
    const { heap, threads } = this.#parts
    const { normSums, count } = this.#needTrained()
    threads.run(this.#rangeJobs({ kind: layout.JOB_NORM, lanes: 0 }))
    const blocks = Math.ceil(count / layout.NORM_BLOCK)
    const sums = heap.f64.subarray(normSums / 8, normSums / 8 + blocks)
    return Math.sqrt(sums.reduce((total, sum) => total + sum, 0))
  }

  #rangeJobs({ kind, lanes }: { kind: number; lanes: number }): number[] {
    return this.#writeRanges([{ start: 0, end: this.#needTrained().count }], at => {
      this.#parts.heap.i32[at] = kind
      this.#parts.heap.i32[at + layout.RANGE_LANES / 4] = lanes
    })
  }

  #updateJobs(order: UpdateOrder, scale: number): number[] {
    const { heap } = this.#parts
    const trained = this.#needTrained()
    const rate = order.learningRate * Math.min(1, this.#steps / order.warmup)
    const decayed = decayedRanges(trained)
    const starts = decayed.map(range => ({ ...range, decay: order.weightDecay }))
    const norms = decayed.map((range, index) => {
      return { start: range.end, end: decayed[index + 1]?.start ?? trained.count, decay: 0 }
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

function readNumbers(heap: Heap, { chunks, numbers }: Forwarded) {
  const logprobs = new Float32Array(numbers.length)
  const entropies = new Float32Array(numbers.length)
  numbers.forEach(({ chunk, wanted }, index) => {
    const at = (chunks[chunk]!.rowList + wanted * layout.ROW_BYTES) / 4
    logprobs[index] = heap.f32[at + layout.ROW_LOGPROB / 4]!
    entropies[index] = heap.f32[at + layout.ROW_ENTROPY / 4]!
  })
  return { logprobs, entropies }
}

/** Gradients of numbers that several rows share are added. */
function writeGradients(
  heap: Heap,
  { chunks, numbers }: Forwarded,
  { logprobs, entropies }: RowGradients,
): void {
  for (const { rowList, wanted } of chunks) {
    for (let row = 0; row < wanted.length; row++) {
      const at = (rowList + row * layout.ROW_BYTES) / 4
      heap.f32[at + layout.ROW_LOGPROB_GRADIENT / 4] = 0
      heap.f32[at + layout.ROW_ENTROPY_GRADIENT / 4] = 0
    }
  }
  numbers.forEach(({ chunk, wanted }, index) => {
    const at = (chunks[chunk]!.rowList + wanted * layout.ROW_BYTES) / 4
    heap.f32[at + layout.ROW_LOGPROB_GRADIENT / 4]! += logprobs[index]!
    heap.f32[at + layout.ROW_ENTROPY_GRADIENT / 4]! += entropies[index]!
  })
}
