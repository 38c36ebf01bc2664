import * as layout from '../kernels/layout.ts'
import type { Heap } from './heap.ts'

/** A stretch of one sequence's tokens inside a job. */
export interface Span {
  readonly start: number
  readonly count: number
  readonly position: number
  /** Address of the sequence's block table, or of the span before; 0 if none is. */
  readonly table: number
  /** Address of its job, for spans that follow each other. */
  readonly job?: number
}

/** Writes a span and gives the address behind it. */
export function writeSpan(heap: Heap, address: number, span: Span): number {
  const at = address / 4
  heap.i32[at + layout.SPAN_START / 4] = span.start
  heap.i32[at + layout.SPAN_COUNT / 4] = span.count
  heap.i32[at + layout.SPAN_POSITION / 4] = span.position
  heap.i32[at + layout.SPAN_TABLE / 4] = span.table
  heap.i32[at + layout.SPAN_JOB / 4] = span.job ?? 0
  return address + layout.SPAN_BYTES
}

/** The fields of a forward or backward job; what is left out is 0. */
export interface PassJob {
  readonly kind: number
  readonly tokens: number
  readonly ids: number
  readonly spans: number
  readonly spanList: number
  readonly rows: number
  readonly rowList: number
  readonly activations?: number
  readonly blocks?: number
  readonly logits?: number
  readonly keep?: number
  readonly before?: number
  readonly heirs?: number
  readonly heirList?: number
  /** The last stage that is run. @default 0 */
  readonly last?: number
}

/** Writes a job at an address. */
export function writeJob(heap: Heap, address: number, job: PassJob): void {
  const words = heap.i32
  const at = address / 4
  words[at] = job.kind
  words[at + layout.JOB_TOKENS / 4] = job.tokens
  words[at + layout.JOB_IDS / 4] = job.ids
  words[at + layout.JOB_SPANS / 4] = job.spans
  words[at + layout.JOB_SPAN_LIST / 4] = job.spanList
  words[at + layout.JOB_ROWS / 4] = job.rows
  words[at + layout.JOB_ROW_LIST / 4] = job.rowList
  words[at + layout.JOB_ACTIVATIONS / 4] = job.activations ?? 0
  words[at + layout.JOB_BLOCKS / 4] = job.blocks ?? 0
  words[at + layout.JOB_LOGITS / 4] = job.logits ?? 0
  words[at + layout.JOB_KEEP / 4] = job.keep ?? layout.KEEP_NOTHING
  words[at + layout.JOB_LANE / 4] = 0
  words[at + layout.JOB_NEXT / 4] = 0
  words[at + layout.JOB_FIRST / 4] = 0
  words[at + layout.JOB_LAST / 4] = job.last ?? 0
  words[at + layout.JOB_BEFORE / 4] = job.before ?? 0
  words[at + layout.JOB_HEIRS / 4] = job.heirs ?? 0
  words[at + layout.JOB_HEIR_LIST / 4] = job.heirList ?? 0
}

/** Says which stages of a job are run next. */
export function writeStages(heap: Heap, job: number, first: number, last: number): void {
  heap.i32[(job + layout.JOB_FIRST) / 4] = first
  heap.i32[(job + layout.JOB_LAST) / 4] = last
}

/** Makes a job go backward into a lane, before the next job of that lane. */
export function writeBackward(
  heap: Heap,
  job: number,
  { lane, next }: { readonly lane: number; readonly next: number },
): void {
  heap.i32[job / 4] = layout.JOB_BACKWARD
  heap.i32[(job + layout.JOB_LANE) / 4] = lane
  heap.i32[(job + layout.JOB_NEXT) / 4] = next
}

/**
 * What temperature divides logits by. Greedy sampling (temperature 0) leaves them as they are, so
 * that its log-probabilities are those of the model itself.
 */
export function inverseTemperature(temperature: number): number {
  return temperature === 0 ? 1 : 1 / temperature
}
