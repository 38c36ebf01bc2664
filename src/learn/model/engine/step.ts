import * as layout from '../kernels/layout.ts'
import type { TokenNews } from '../protocol.ts'
import type { Heap } from './heap.ts'
import { inverseTemperature, writeJob, writeSpan } from './job.ts'
import { jobTokens, type Plan } from './plan.ts'
import { nextRandom, type Sequence, type TopLogprob } from './sequence.ts'
import { likeliestOf, type Part, type Stepper, slotsFor, spanLimit, stepTokens } from './stepper.ts'
import type { Threads } from './threads.ts'
import { Turns } from './turns.ts'

/** Few enough tokens per job that all threads get some, enough that weights are used often. */
const smallestJob = 16

/** Weights up to this size stay in the cache while few sequences use them. */
export const smallWeights = 8 * 2 ** 20

/** The memory in which steps of sampling are written down. */
export interface StepMemory {
  /** Sequences that run at the same time, at most. */
  readonly slots: number
  readonly ids: number
  readonly spans: number
  readonly rows: number
  readonly jobs: number
  readonly logits: number
  readonly tables: number
  /** Bytes of one sequence's block table. */
  readonly tableBytes: number
}

/** What steps over the heap need. */
export interface HeapStepperParts {
  readonly heap: Heap
  readonly plan: Plan
  readonly threads: Threads
}

/** Steps of sampling on the threads of this processor. */
export class HeapStepper implements Stepper {
  readonly #parts: HeapStepperParts
  readonly #context: StepContext
  readonly #turns: Turns

  constructor(parts: HeapStepperParts) {
    this.#parts = parts
    const { heap, plan, threads } = parts
    this.#context = { plan, memory: takeStepMemory(heap, plan), threads }
    this.#turns = new Turns(plan)
  }

  get slots(): number {
    return this.#context.memory.slots
  }

  get blocks(): number {
    return this.#parts.plan.blocks
  }

  get context(): number {
    return this.#parts.plan.shape.context
  }

  next(running: Map<number, Sequence>): readonly Sequence[] {
    return this.#turns.next(running, this.#parts.threads.count)
  }

  place(sequence: Sequence): void {
    writeTable(this.#parts.heap, this.#context, sequence)
  }

  copyBlock(from: number, to: number): void {
    const { heap, plan } = this.#parts
    const size = plan.blockBytes / 4
    const start = plan.cache / 4 + from * size
    heap.f32.copyWithin(plan.cache / 4 + to * size, start, start + size)
  }

  step(parts: readonly Part[]): undefined {
    const { heap, threads } = this.#parts
    threads.run(writeStep(heap, this.#context, parts))
  }

  token(row: number): TokenNews {
    return readRow(this.#parts.heap, this.#context.memory.rows + row * layout.ROW_BYTES)
  }

  likeliest(index: number, count: number): TopLogprob[] {
    return readTopLogprobs(this.#parts.heap, this.#context, { index, count })
  }
}

/** Takes the memory of sampling steps. */
export function takeStepMemory(heap: Heap, plan: Plan): StepMemory {
  const tableBytes = (Math.ceil(plan.shape.context / layout.BLOCK) + 1) * 4
  const slots = slotsFor(plan.paddedVocabulary)
  return {
    slots,
    ids: heap.take(stepTokens * 4),
    spans: heap.take(slots * layout.SPAN_BYTES),
    rows: heap.take(slots * layout.ROW_BYTES),
    jobs: heap.take(slots * layout.JOB_BYTES),
    logits: heap.take(slots * plan.paddedVocabulary * 4),
    tables: heap.take(slots * tableBytes),
    tableBytes,
  }
}

/** Writes a sequence's block table. */
function writeTable(heap: Heap, { plan, memory }: StepContext, { slot, path }: Sequence): void {
  const at = (memory.tables + slot * memory.tableBytes) / 4
  path.forEach((node, index) => {
    heap.i32[at + index] = node.block * plan.blockBytes
  })
}

/** What writing steps needs. */
interface StepContext {
  readonly plan: Plan
  readonly memory: StepMemory
  readonly threads: { readonly count: number }
}

/** Writes the jobs of a step and gives their addresses. Any cut gives the same bits. */
function writeStep(heap: Heap, context: StepContext, parts: readonly Part[]): number[] {
  const { memory, plan, threads } = context
  const total = parts.reduce((sum, part) => sum + part.count, 0)
  // Two jobs per thread, so that others can take work from a slow one; but every job reads all weights.
  const jobsEach = threads.count === 1 || plan.weightBytes > smallWeights ? 1 : 2
  const fair = Math.ceil(total / (threads.count * jobsEach))
  const size = Math.min(Math.max(fair, smallestJob), jobTokens - spanLimit)
  const jobs: number[] = []
  const cursor = { ids: memory.ids, spans: memory.spans, row: memory.rows }
  for (let first = 0; first < parts.length; ) {
    let tokens = 0
    let end = first
    while (end < parts.length && tokens < size) tokens += parts[end++]!.count
    const job = memory.jobs + jobs.length * layout.JOB_BYTES
    writeParts(heap, context, { parts: parts.slice(first, end), tokens, job, cursor })
    jobs.push(job)
    first = end
  }
  return jobs
}

interface JobParts {
  readonly parts: readonly Part[]
  readonly tokens: number
  readonly job: number
  readonly cursor: { ids: number; spans: number; row: number }
}

function writeParts(heap: Heap, context: StepContext, job: JobParts): void {
  const { plan, memory } = context
  const { parts, tokens, cursor } = job
  const { ids, spans: spanList, row: rowList } = cursor
  let start = 0
  for (const { sequence, count, row } of parts) {
    const { computed, slot } = sequence
    for (let index = 0; index < count; index++) {
      heap.i32[ids / 4 + start + index] = sequence.tokens[computed + index]!
    }
    const table = memory.tables + slot * memory.tableBytes
    cursor.spans = writeSpan(heap, cursor.spans, { start, count, position: computed, table })
    start += count
    if (row === undefined) continue
    writeRow(heap, cursor.row, { token: start - 1, sequence })
    cursor.row += layout.ROW_BYTES
  }
  cursor.ids += tokens * 4
  const rows = (cursor.row - rowList) / layout.ROW_BYTES
  const firstRow = (rowList - memory.rows) / layout.ROW_BYTES
  writeJob(heap, job.job, {
    kind: layout.JOB_FORWARD,
    tokens,
    ids,
    spans: parts.length,
    spanList,
    rows,
    rowList,
    blocks: plan.cache,
    logits: memory.logits + firstRow * plan.paddedVocabulary * 4,
    last: plan.shape.layers,
  })
}

function writeRow(
  heap: Heap,
  row: number,
  { token, sequence }: { token: number; sequence: Sequence },
): void {
  const { temperature, topK, topP, minP } = sequence.order
  const at = row / 4
  heap.i32[at + layout.ROW_TOKEN / 4] = token
  heap.i32[at + layout.ROW_TARGET / 4] = -1
  heap.f32[at + layout.ROW_INVERSE_TEMPERATURE / 4] = inverseTemperature(temperature)
  heap.i32[at + layout.ROW_GREEDY / 4] = temperature === 0 ? 1 : 0
  heap.i32[at + layout.ROW_TOP_K / 4] = topK
  heap.f32[at + layout.ROW_TOP_P / 4] = topP
  heap.f32[at + layout.ROW_MIN_P / 4] = minP
  heap.f64[(row + layout.ROW_RANDOM) / 8] = nextRandom(sequence)
}

/** The result of a row after the step. */
function readRow(heap: Heap, row: number): TokenNews {
  const at = row / 4
  return {
    id: heap.i32[at + layout.ROW_ID / 4]!,
    logprob: heap.f32[at + layout.ROW_LOGPROB / 4]!,
    entropy: heap.f32[at + layout.ROW_ENTROPY / 4]!,
  }
}

/** The most likely ids of a row, likeliest first; equal ones by id. */
function readTopLogprobs(
  heap: Heap,
  { plan, memory }: StepContext,
  { index, count }: { index: number; count: number },
): TopLogprob[] {
  const row = memory.rows + index * layout.ROW_BYTES
  const at = memory.logits / 4 + index * plan.paddedVocabulary
  const logits = heap.f32.subarray(at, at + plan.shape.vocabulary)
  const maximum = heap.f32[(row + layout.ROW_MAXIMUM) / 4]!
  const logSum = heap.f64[(row + layout.ROW_LOG_SUM) / 8]!
  return likeliestOf(logits, count).map(id => ({
    id,
    logprob: Math.fround(Math.fround(logits[id]! - maximum) - logSum),
  }))
}
