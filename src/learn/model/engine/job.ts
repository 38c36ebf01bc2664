import * as layout from '../kernels/layout.ts'
import type { Heap } from './heap.ts'

/** A stretch of one sequence's tokens inside a job. */
export interface Span {
  readonly start: number
  readonly count: number
  readonly position: number
  /** Address of the sequence's block table. */
  readonly table: number
}

/** Writes a span and gives the address behind it. */
export function writeSpan(heap: Heap, address: number, span: Span): number {
  const at = address / 4
  heap.i32[at + layout.SPAN_START / 4] = span.start
  heap.i32[at + layout.SPAN_COUNT / 4] = span.count
  heap.i32[at + layout.SPAN_POSITION / 4] = span.position
  heap.i32[at + layout.SPAN_TABLE / 4] = span.table
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
  readonly retain?: boolean
  readonly lane?: number
  readonly recompute?: boolean
  readonly next?: number
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
  words[at + layout.JOB_RETAIN / 4] = job.retain ? 1 : 0
  words[at + layout.JOB_LANE / 4] = job.lane ?? 0
  words[at + layout.JOB_RECOMPUTE / 4] = job.recompute ? 1 : 0
  words[at + layout.JOB_NEXT / 4] = job.next ?? 0
}

/**
 * What temperature divides logits by. Greedy sampling (temperature 0) leaves them as they are, so
 * that its log-probabilities are those of the model itself.
 */
export function inverseTemperature(temperature: number): number {
  return temperature === 0 ? 1 : 1 / temperature
}
