import * as layout from '../kernels/layout.ts'
import type { Chunk, ChunkSpan } from './chunks.ts'
import type { Heap } from './heap.ts'
import { inverseTemperature, writeJob, writeSpan } from './job.ts'
import { type Plan, widthsOf } from './plan.ts'
import type { Kernels } from './webassembly.ts'

/** A chunk with the addresses of what was written down for it. */
export interface PlacedChunk extends Chunk {
  readonly job: number
  readonly idList: number
  readonly spanList: number
  readonly rowList: number
  readonly heirList: number
  /** Where its activations stay. */
  readonly activations: number
  /** Gradients of keys and values of the tokens before its first span; 0 if it has none. */
  readonly before: number
  readonly heirs: readonly Heir[]
}

/** Gradients of some keys and values of a chunk that another chunk computes. */
interface Heir {
  readonly start: number
  readonly count: number
  /** The chunk that computes them, and where among its tokens before. */
  readonly by: number
  readonly position: number
}

/** What placing chunks needs. */
export interface PlaceOptions {
  readonly heap: Heap
  readonly kernels: Kernels
  readonly plan: Plan
  /** What their activations are kept for: nothing, or a backward pass. */
  readonly keeps: boolean
  /** Bytes of activations that may be kept whole; beyond them only inputs of layers are. */
  readonly budget: number
}

/** Places chunks in the heap's arena and writes them down. */
export function placeChunks(
  chunks: readonly Chunk[],
  options: PlaceOptions,
): { readonly chunks: readonly PlacedChunk[]; readonly keep: number } {
  const { heap, kernels, plan, keeps, budget } = options
  const bytesOf = (chunk: Chunk, keep: number) =>
    align(kernels.keptBytes(chunk.ids.length, chunk.wanted.length, keep))
  const total = (keep: number) => chunks.reduce((sum, chunk) => sum + bytesOf(chunk, keep), 0)
  const whole = total(layout.KEEP_ALL)
  const keep = !keeps ? layout.KEEP_NOTHING : whole <= budget ? layout.KEEP_ALL : layout.KEEP_INPUTS
  const heirs = findHeirs(chunks)
  const { keys } = widthsOf(plan.shape)
  const befores = chunks.map(({ spans }) => (keeps ? spans[0]!.position * keys * 16 : 0))
  const sizes = chunks.map((chunk, index) => {
    return (
      describedBytes(chunk, heirs[index]!.length) + align(befores[index]!) + bytesOf(chunk, keep)
    )
  })
  let address = heap.arena(sizes.reduce((sum, size) => sum + size, 0))
  const placed = chunks.map((chunk, index) => {
    const at = placeChunk(chunk, { address, heirs: heirs[index]!, before: befores[index]! })
    address += sizes[index]!
    return at
  })
  placed.forEach((chunk, index) => {
    writeChunk(heap, chunk, { chunks: placed, keep, keyBytes: keys * 8, index })
  })
  return { chunks: placed, keep }
}

function placeChunk(
  chunk: Chunk,
  place: { readonly address: number; readonly heirs: readonly Heir[]; readonly before: number },
): PlacedChunk {
  const { address: job, heirs, before } = place
  const rowList = job + align(layout.JOB_BYTES)
  const spanList = rowList + chunk.wanted.length * layout.ROW_BYTES
  const heirList = spanList + chunk.spans.length * layout.SPAN_BYTES
  const idList = heirList + heirs.length * layout.HEIR_BYTES
  const behind = job + describedBytes(chunk, heirs.length)
  return {
    ...chunk,
    job,
    rowList,
    spanList,
    heirList,
    idList,
    heirs,
    before: before === 0 ? 0 : behind,
    activations: behind + align(before),
  }
}

/** Bytes of a chunk's description. */
function describedBytes({ ids, spans, wanted }: Chunk, heirs: number): number {
  const rows = wanted.length * layout.ROW_BYTES
  const lists = spans.length * layout.SPAN_BYTES + heirs * layout.HEIR_BYTES + ids.length * 4
  return align(layout.JOB_BYTES) + align(rows + lists)
}

function align(bytes: number): number {
  return Math.ceil(bytes / 64) * 64
}

/** For each chunk the gradients that later chunks compute for its tokens. */
function findHeirs(chunks: readonly Chunk[]): Heir[][] {
  const heirs = chunks.map(() => [] as Heir[])
  chunks.forEach(({ spans }, by) => {
    for (let place = spans[0]!.parent; place; ) {
      const span: ChunkSpan = chunks[place.chunk]!.spans[place.span]!
      const { start, count, position } = span
      heirs[place.chunk]!.push({ start, count, by, position })
      place = span.parent
    }
  })
  return heirs
}

interface Written {
  readonly chunks: readonly PlacedChunk[]
  readonly keep: number
  /** Bytes of a token's keys and values. */
  readonly keyBytes: number
  readonly index: number
}

function writeChunk(heap: Heap, chunk: PlacedChunk, written: Written): void {
  const { chunks, keep, keyBytes } = written
  heap.i32.set(chunk.ids, chunk.idList / 4)
  let address = chunk.spanList
  for (const { parent, ...span } of chunk.spans) {
    const before = parent && chunks[parent.chunk]!.spanList + parent.span * layout.SPAN_BYTES
    address = writeSpan(heap, address, { ...span, table: before ?? 0, job: chunk.job })
  }
  address = chunk.heirList
  for (const { start, count, by, position } of chunk.heirs) {
    const { before, spans } = chunks[by]!
    heap.i32.set(
      [start, count, before + position * keyBytes, spans[0]!.position * keyBytes],
      address / 4,
    )
    address += layout.HEIR_BYTES
  }
  chunk.wanted.forEach(({ token, target, temperature }, index) => {
    const at = (chunk.rowList + index * layout.ROW_BYTES) / 4
    heap.i32[at + layout.ROW_TOKEN / 4] = token
    heap.i32[at + layout.ROW_TARGET / 4] = target
    heap.f32[at + layout.ROW_INVERSE_TEMPERATURE / 4] = inverseTemperature(temperature)
  })
  writeJob(heap, chunk.job, {
    kind: layout.JOB_FORWARD,
    tokens: chunk.ids.length,
    ids: chunk.idList,
    spans: chunk.spans.length,
    spanList: chunk.spanList,
    rows: chunk.wanted.length,
    rowList: chunk.rowList,
    activations: chunk.activations,
    keep,
    before: chunk.before,
    heirs: chunk.heirs.length,
    heirList: chunk.heirList,
  })
}
