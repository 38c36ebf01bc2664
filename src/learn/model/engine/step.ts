import * as layout from '../kernels/layout.ts'
import type { Heap } from './heap.ts'
import { inverseTemperature, writeJob, writeSpan } from './job.ts'
import { jobTokens, type Plan } from './plan.ts'
import { nextRandom, type Sequence, type TopLogprob } from './sequence.ts'

/** Sequences that run at the same time, at most. */
const slotLimit = 512

/** Bytes of logits: models of many words run fewer sequences at the same time. */
const logitBytes = 64 * 2 ** 20

/** Tokens of one sequence that one step computes, at most: others get their turn in between. */
const spanLimit = 128

/** Tokens of one step, at most. */
const stepTokens = 4096

/** Few enough tokens per job that all threads get some, enough that weights are used often. */
const smallestJob = 16

/** Weights up to this size stay in the cache while few sequences use them. */
export const smallWeights = 8 * 2 ** 20

/** One sequence's part of a step. */
export interface Part {
  readonly sequence: Sequence
  readonly count: number
  /** Where the next token's distribution is written, when the step reaches it. */
  readonly row: number | undefined
}

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

/** Takes the memory of sampling steps. */
export function takeStepMemory(heap: Heap, plan: Plan): StepMemory {
  const tableBytes = (Math.ceil(plan.shape.context / layout.BLOCK) + 1) * 4
  const slots = Math.min(slotLimit, Math.floor(logitBytes / (plan.paddedVocabulary * 4)))
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
export function writeTable(
  heap: Heap,
  { plan, memory }: StepContext,
  { slot, path }: Sequence,
): void {
  const at = (memory.tables + slot * memory.tableBytes) / 4
  path.forEach((node, index) => {
    heap.i32[at + index] = node.block * plan.blockBytes
  })
}

/** What writing steps needs. */
export interface StepContext {
  readonly plan: Plan
  readonly memory: StepMemory
  readonly threads: { readonly count: number }
}

/** Chooses what each sequence does in the next step; sequences beyond the step's size wait. */
export function planParts(sequences: readonly Sequence[], memory: StepMemory): Part[] {
  const parts: Part[] = []
  let total = 0
  let rows = 0
  for (const sequence of sequences) {
    const missing = sequence.length - sequence.computed
    const count = Math.min(missing, spanLimit)
    if (total + count > stepTokens) continue
    const row = count === missing ? memory.rows + rows++ * layout.ROW_BYTES : undefined
    parts.push({ sequence, count, row })
    total += count
  }
  return parts
}

/** Writes the jobs of a step and gives their addresses. Any cut gives the same bits. */
export function writeStep(heap: Heap, context: StepContext, parts: readonly Part[]): number[] {
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
    writeRow(heap, row, { token: start - 1, sequence })
    cursor.row = row + layout.ROW_BYTES
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
export function readRow(heap: Heap, row: number): { id: number; logprob: number; entropy: number } {
  const at = row / 4
  return {
    id: heap.i32[at + layout.ROW_ID / 4]!,
    logprob: heap.f32[at + layout.ROW_LOGPROB / 4]!,
    entropy: heap.f32[at + layout.ROW_ENTROPY / 4]!,
  }
}

/** The most likely ids of a row, likeliest first; equal ones by id. */
export function readTopLogprobs(
  heap: Heap,
  { plan, memory }: StepContext,
  { row, count }: { row: number; count: number },
): TopLogprob[] {
  const index = (row - memory.rows) / layout.ROW_BYTES
  const at = memory.logits / 4 + index * plan.paddedVocabulary
  const logits = heap.f32.subarray(at, at + plan.shape.vocabulary)
  const maximum = heap.f32[(row + layout.ROW_MAXIMUM) / 4]!
  const logSum = heap.f64[(row + layout.ROW_LOG_SUM) / 8]!
  return likeliest(logits, count).map(id => ({
    id,
    logprob: Math.fround(Math.fround(logits[id]! - maximum) - logSum),
  }))
}

/** The ids of the largest logits, largest first; equal ones by id. */
function likeliest(logits: Float32Array, count: number): number[] {
  const isBefore = (a: number, b: number) =>
    logits[a]! > logits[b]! || (logits[a] === logits[b] && a < b)
  const best: number[] = []
  for (let id = 0; id < logits.length; id++) {
    if (best.length === count && !isBefore(id, best[count - 1]!)) continue
    if (best.length === count) best.pop()
    let at = best.length
    while (at > 0 && isBefore(id, best[at - 1]!)) at--
    best.splice(at, 0, id)
  }
  return best
}
