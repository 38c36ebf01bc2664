import * as layout from '../kernels/layout.ts'
import type { RowOrder } from '../protocol.ts'
import { jobTokens } from './plan.ts'
import { buildTrie, type Trie } from './trie.ts'

/** Tokens that follow each other in one chunk. */
export interface ChunkSpan {
  /** Its first token inside the chunk. */
  readonly start: number
  readonly count: number
  readonly position: number
  /** What comes before it. */
  readonly parent: SpanPlace | undefined
}

/** A span of a chunk, both by number. */
export interface SpanPlace {
  readonly chunk: number
  readonly span: number
}

/** A log-probability that is wanted: of an id behind a token of the chunk. */
export interface Wanted {
  readonly token: number
  readonly target: number
  readonly temperature: number
}

/** Tokens that go through the model together. */
export interface Chunk {
  readonly ids: Int32Array
  readonly spans: readonly ChunkSpan[]
  readonly wanted: readonly Wanted[]
}

/** Rows as chunks, and where each wanted number of the rows is found, in their order. */
export interface Cut {
  readonly chunks: readonly Chunk[]
  readonly numbers: readonly { readonly chunk: number; readonly wanted: number }[]
  /** Tokens that are computed, and those that the rows have. */
  readonly tokens: number
  readonly rowTokens: number
}

/** The fewest tokens for which a chunk is worth its own pass. */
const smallestChunk = 64

/**
 * Cuts rows into chunks by their sizes alone, so that sums over chunks have one order whatever the
 * number of threads. `joins` computes common beginnings once; otherwise rows that fit stay whole.
 */
export function cutChunks(rows: readonly RowOrder[], joins: boolean): Cut {
  const trie = buildTrie(rows, joins)
  const tokens = trie.ids.length
  const size = Math.min(Math.max(Math.ceil(tokens / layout.LANES), smallestChunk), jobTokens)
  const { chunks, places } = cutTrie(trie, { size, joins })
  const wanted = chunks.map(() => [] as Wanted[])
  const known = new Map<string, number>()
  const numbers = rows.flatMap(({ ids, mask, temperature }, row) => {
    const found: { chunk: number; wanted: number }[] = []
    for (let at = 1; at < mask.length; at++) {
      if (mask[at] === 0) continue
      const { chunk, token } = places[trie.places[row]![at - 1]!]!
      const key = joins ? `${chunk} ${token} ${ids[at]} ${temperature}` : ''
      const same = joins ? known.get(key) : undefined
      if (same === undefined) {
        known.set(key, wanted[chunk]!.length)
        wanted[chunk]!.push({ token, target: ids[at]!, temperature })
      }
      found.push({ chunk, wanted: same ?? wanted[chunk]!.length - 1 })
    }
    return found
  })
  return {
    chunks: chunks.map((chunk, index) => ({ ...chunk, wanted: wanted[index]! })),
    numbers,
    tokens,
    rowTokens: trie.before,
  }
}

/** Where a token of the trie went. */
interface TokenPlace extends SpanPlace {
  readonly token: number
}

function cutTrie(
  { ids, parents, positions, ends }: Trie,
  { size, joins }: { readonly size: number; readonly joins: boolean },
) {
  const chunks: { ids: Int32Array; spans: ChunkSpan[] }[] = []
  const places: TokenPlace[] = []
  let open: { start: number; spans: ChunkSpan[] } = { start: 0, spans: [] }
  const close = (end: number) => {
    if (end > open.start) chunks.push({ ids: ids.subarray(open.start, end), spans: open.spans })
    open = { start: end, spans: [] }
  }
  for (let first = 0; first < ids.length; ) {
    let end = first + 1
    while (ends[end - 1] === 0) end++
    if (!joins && first > open.start && end - open.start > size) close(first)
    const room = open.start + (joins ? size : Math.max(size, jobTokens)) - first
    end = Math.min(end, first + room)
    const parent = parents[first]!
    open.spans.push({
      start: first - open.start,
      count: end - first,
      position: positions[first]!,
      parent: parent < 0 ? undefined : places[parent],
    })
    for (let at = first; at < end; at++) {
      places.push({ chunk: chunks.length, span: open.spans.length - 1, token: at - open.start })
    }
    if (end - open.start >= size) close(end)
    first = end
  }
  close(ids.length)
  return { chunks, places }
}
