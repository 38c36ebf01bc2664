import * as layout from '../kernels/layout.ts'
import type {
  AdapterOrder,
  OptimizerState,
  RowGradients,
  RowNumbers,
  RowOrder,
  UpdateOrder,
} from '../protocol.ts'
import type { Tensor } from '../tensor.ts'
import { placeAdapter } from './adapted.ts'
import { type Cut, cutChunks } from './chunks.ts'
import type { Learner } from './engine.ts'
import type { Heap } from './heap.ts'
import { writeBackward, writeStages } from './job.ts'
import { decayedRanges, fromTensors, initialise, toTensors } from './parameters.ts'
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

/** Learns on the threads of this processor. */
export class Trainer implements Learner {
  readonly #parts: TrainerParts
  #trained: TrainedArrays | undefined
  #jobs = 0
  #kept: Forwarded | undefined
  #steps = 0

  constructor(parts: TrainerParts) {
    this.#parts = parts
  }

  /** Trains these arrays from now on. */
  train(trained: TrainedArrays): void {
    const { plan, heap } = this.#parts
    const ranges = Math.ceil(trained.count / rangeNumbers) + 4 * (plan.shape.layers + 1)
    this.#trained = trained
    this.#jobs = heap.take(ranges * layout.JOB_BYTES)
    this.#steps = 0
  }

  adapt({ shape, factors }: AdapterOrder): void {
    const { heap, plan } = this.#parts
    const arrays = placeAdapter(heap, plan, shape)
    const values = this.#numbers(arrays, 'values')
    if ('seed' in factors) initialise(values, arrays.places, factors.seed)
    else fromTensors(values, arrays.places, factors.tensors)
    this.train(arrays)
  }

  tensors(): readonly Tensor[] {
    const trained = this.#trained
    return trained ? toTensors(this.#numbers(trained, 'values'), trained.places) : []
  }

  takeTensors(tensors: readonly Tensor[]): void {
    const trained = this.#trained
    if (!trained) throw new Error('A pretrained model takes an adapter, and it has none yet.')
    fromTensors(this.#numbers(trained, 'values'), trained.places, tensors)
    this.pack()
  }

  #numbers(
    { count, ...arrays }: TrainedArrays,
    name: 'values' | 'moment1' | 'moment2',
  ): Float32Array {
    return this.#parts.heap.f32.subarray(arrays[name] / 4, arrays[name] / 4 + count)
  }

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

  update(order: UpdateOrder): number {
    const { heap, threads } = this.#parts
    const { gradient, count } = this.#needTrained()
    const norm = this.#gradientNorm()
    if (!Number.isFinite(norm)) {
      heap.f32.fill(0, gradient / 4, gradient / 4 + count)
      throw notFinite()
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

  state(version: number): OptimizerState {
    const trained = this.#needTrained()
    const moments = (name: 'moment1' | 'moment2') =>
      toTensors(this.#numbers(trained, name), trained.places)
    const [moment1, moment2] = [moments('moment1'), moments('moment2')]
    return { steps: this.#steps, version, moment1, moment2 }
  }

  takeState(state: OptimizerState): void {
    const trained = this.#needTrained()
    for (const name of ['moment1', 'moment2'] as const) {
      fromTensors(this.#numbers(trained, name), trained.places, state[name])
    }
    this.#steps = state.steps
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
    const rate = rateOf(order, this.#steps)
    const { correction1, correction2 } = correctionsOf(order, this.#steps)
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
      heap.f32[at + layout.UPDATE_CORRECTION_1 / 4] = correction1
      heap.f32[at + layout.UPDATE_CORRECTION_2 / 4] = correction2
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

/** The error of a gradient that is dropped. */
export function notFinite(): Error {
  return new Error('The gradient is not finite; it was dropped and the weights stay as they are.')
}

/** The learning rate of a step: it rises over the first ones. */
export function rateOf({ learningRate, warmup }: UpdateOrder, step: number): number {
  return learningRate * Math.min(1, step / warmup)
}

/** What the moments are multiplied by, since they began at 0. */
export function correctionsOf({ beta1, beta2 }: UpdateOrder, step: number) {
  return { correction1: 1 / (1 - power(beta1, step)), correction2: 1 / (1 - power(beta2, step)) }
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
