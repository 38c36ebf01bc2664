import * as layout from '../kernels/layout.ts'
import type { RowOrder } from '../protocol.ts'
import type { Heap } from './heap.ts'
import { inverseTemperature, writeJob, writeSpan } from './job.ts'
import { jobTokens } from './plan.ts'

/** A row's part of a chunk: only tokens up to the last wanted one are computed. */
interface ChunkRow {
  readonly order: RowOrder
  /** Tokens to compute: all before the last wanted one. */
  readonly count: number
  readonly wanted: number
}

/** Rows that go through the model together. */
export interface Chunk {
  readonly rows: readonly ChunkRow[]
  readonly tokens: number
  readonly wanted: number
}

/** A chunk with the addresses of what was written down for it. */
export interface PlacedChunk extends Chunk {
  readonly job: number
  readonly ids: number
  readonly spanList: number
  readonly rowList: number
  /** Where its activations stay for the backward pass; 0 when they are computed again. */
  readonly activations: number
}

/** The fewest tokens for which a chunk is worth its own pass. */
const smallestChunk = 64

/**
 * Cuts rows into chunks by their sizes alone, so that sums over chunks have one order whatever the
 * number of threads. Rows without a wanted token are left out.
 */
export function cutChunks(orders: readonly RowOrder[]): Chunk[] {
  const rows = orders
    .map(order => ({ order, count: order.mask.lastIndexOf(1), wanted: countWanted(order.mask) }))
    .filter(row => row.wanted > 0)
  const total = rows.reduce((sum, row) => sum + row.count, 0)
  const size = Math.min(Math.max(Math.ceil(total / layout.LANES), smallestChunk), jobTokens)
  const chunks: Chunk[] = []
  let open: ChunkRow[] = []
  let tokens = 0
  const close = () => {
    const wanted = open.reduce((sum, row) => sum + row.wanted, 0)
    if (open.length > 0) chunks.push({ rows: open, tokens, wanted })
    open = []
    tokens = 0
  }
  for (const row of rows) {
    if (tokens + row.count > size) close()
    open.push(row)
    tokens += row.count
  }
  close()
  return chunks
}

function countWanted(mask: Uint8Array): number {
  return mask.reduce((sum, wanted) => sum + wanted, 0)
}

/** Bytes of a chunk's description, without activations. */
function descriptionBytes({ rows, tokens, wanted }: Chunk): number {
  const lists = rows.length * layout.SPAN_BYTES + wanted * layout.ROW_BYTES
  return align(layout.JOB_BYTES) + align(lists + 8) + align(tokens * 4)
}

/**
 * Places chunks in the heap's arena and writes them down as forward jobs. `keptBytes` says how
 * much a chunk's activations take; as many chunks as fit `budget` keep theirs.
 */
export function placeChunks(
  heap: Heap,
  chunks: readonly Chunk[],
  { budget, keptBytes }: PlaceOptions,
): PlacedChunk[] {
  const descriptions = chunks.reduce((sum, chunk) => sum + descriptionBytes(chunk), 0)
  let spent = 0
  const kept = chunks.map(chunk => {
    const bytes = budget > 0 ? align(keptBytes(chunk)) : 1
    if (spent + bytes > budget) return undefined
    spent += bytes
    return bytes
  })
  let address = heap.arena(descriptions + spent)
  let activations = address + descriptions
  return chunks.map((chunk, index) => {
    const lists = address + align(layout.JOB_BYTES)
    const ids = lists + align(chunkLists(chunk))
    const placed: PlacedChunk = {
      ...chunk,
      job: address,
      rowList: lists,
      spanList: lists + chunk.wanted * layout.ROW_BYTES,
      ids,
      activations: kept[index] === undefined ? 0 : activations,
    }
    address += descriptionBytes(chunk)
    activations += kept[index] ?? 0
    writeChunk(heap, placed)
    return placed
  })
}

interface PlaceOptions {
  readonly budget: number
  readonly keptBytes: (chunk: Chunk) => number
}

function chunkLists({ rows, wanted }: Chunk): number {
  return rows.length * layout.SPAN_BYTES + wanted * layout.ROW_BYTES + 8
}

function align(bytes: number): number {
  return Math.ceil(bytes / 64) * 64
}

function writeChunk(heap: Heap, chunk: PlacedChunk): void {
  let start = 0
  let span = chunk.spanList
  let row = chunk.rowList
  for (const { order, count } of chunk.rows) {
    heap.i32.set(order.ids.subarray(0, count), chunk.ids / 4 + start)
    span = writeSpan(heap, span, { start, count, position: 0, table: 0 })
    row = writeWanted(heap, row, { order, start, count })
    start += count
  }
  writeChunkJob(heap, chunk, { kind: layout.JOB_FORWARD })
}

function writeWanted(
  heap: Heap,
  first: number,
  { order, start, count }: { order: RowOrder; start: number; count: number },
): number {
  let row = first
  for (let token = 1; token <= count; token++) {
    if (order.mask[token] === 0) continue
    const at = row / 4
    heap.i32[at + layout.ROW_TOKEN / 4] = start + token - 1
    heap.i32[at + layout.ROW_TARGET / 4] = order.ids[token]!
    heap.f32[at + layout.ROW_INVERSE_TEMPERATURE / 4] = inverseTemperature(order.temperature)
    row += layout.ROW_BYTES
  }
  return row
}

/** Writes a chunk's job: forward, or backward into a lane. */
export function writeChunkJob(
  heap: Heap,
  chunk: PlacedChunk,
  job: { readonly kind: number; readonly lane?: number; readonly next?: number },
): void {
  const { ids, spanList, rowList, activations } = chunk
  writeJob(heap, chunk.job, {
    ...job,
    tokens: chunk.tokens,
    ids,
    spans: chunk.rows.length,
    spanList,
    rows: chunk.wanted,
    rowList,
    activations,
    retain: activations !== 0 || job.kind === layout.JOB_BACKWARD,
    recompute: activations === 0 && job.kind === layout.JOB_BACKWARD,
  })
}
