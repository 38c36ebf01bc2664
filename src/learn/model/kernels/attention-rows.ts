// Causal attention of spans that follow each other as the branches of a tree, as training and scoring
// have them. Keys and values of the path to a span are laid out by position for one head at a time,
// and sixteen queries use them together: spans come parents first, so the places before a span always
// hold its own ancestors. Sums have the same order as over blocks; what a query must not see has the
// weight zero.

import { scaleHead, softmax } from './attention'
import {
  JOB_PROJECTED, JOB_SPANS, JOB_SPAN_LIST, JOB_STRIDE, JOB_TURN, SPAN_BYTES, SPAN_COUNT,
  SPAN_JOB, SPAN_POSITION, SPAN_START, SPAN_TABLE,
} from './layout'
import { multiply, packRows, packTurnedAt } from './matmul'
import {
  blockTokens, context, firstSeen, group, headSize, heads, keyHeads, keyWidth, queryWidth, side,
} from './plan'

/** Floats of scratch that `attendSpans` wants for keys and values. */
export function rowScratch(): usize {
  return 2 * (context + blockTokens) * headSize
}

/** A word of a job or a span. */
// @ts-ignore: decorator
@inline
export function field(at: usize, offset: usize): usize {
  return <usize>load<u32>(at + offset)
}

/** The positions up to which the spans of a job reach, whole blocks. */
export function reachOf(job: usize): usize {
  let reach: usize = 0
  let span = field(job, JOB_SPAN_LIST)
  const end = span + field(job, JOB_SPANS) * SPAN_BYTES
  for (; span < end; span += SPAN_BYTES) {
    reach = max(reach, field(span, SPAN_POSITION) + field(span, SPAN_COUNT))
  }
  return reach + blockTokens - 1 & ~(blockTokens - 1)
}

/** A layer's queries, keys and values of a span, in whichever job it lies. */
export function rowsOf(span: usize, layer: usize): usize {
  const job = field(span, SPAN_JOB)
  const offset = layer * field(job, JOB_STRIDE) + (layer & 1) * field(job, JOB_TURN)
  return field(job, JOB_PROJECTED) + offset + field(span, SPAN_START) * (side << 2)
}

/** Lays a span's keys out turned, and its values, at their positions. */
export function packSpan(
  span: usize, layer: usize, keyHead: usize, reach: usize, turned: usize, values: usize,
): void {
  const key = rowsOf(span, layer) + (queryWidth + keyHead * headSize << 2)
  const place = field(span, SPAN_POSITION)
  const count = field(span, SPAN_COUNT)
  packTurnedAt(key, side << 2, turned, place, count, headSize)
  packRows(
    key + (keyWidth << 2), side << 2, values + (place << 5), reach << 5, count, headSize,
  )
}

/** Attention of a job's spans in one layer. */
export function attendSpans(
  job: usize, layer: usize, out: usize, stats: usize, scores: usize, scratch: usize,
): void {
  const list = field(job, JOB_SPAN_LIST)
  const end = list + field(job, JOB_SPANS) * SPAN_BYTES
  const reach = reachOf(job)
  const values = scratch + (reach * headSize << 2)
  for (let keyHead: usize = 0; keyHead < keyHeads; keyHead++) {
    for (let before = field(list, SPAN_TABLE); before != 0; before = field(before, SPAN_TABLE)) {
      packSpan(before, layer, keyHead, reach, scratch, values)
    }
    for (let span = list; span < end; span += SPAN_BYTES) {
      packSpan(span, layer, keyHead, reach, scratch, values)
      for (let head = keyHead * group; head < (keyHead + 1) * group; head++) {
        attendHead(span, layer, head, reach, scratch, values, out, stats, scores)
      }
    }
  }
}

/** One head of a span. */
function attendHead(
  span: usize, layer: usize, head: usize, reach: usize, keys: usize, values: usize, out: usize,
  stats: usize, scores: usize,
): void {
  const count = field(span, SPAN_COUNT)
  const position = field(span, SPAN_POSITION)
  const start = field(span, SPAN_START)
  const offset = head * (headSize << 2)
  const query = rowsOf(span, layer) + offset
  for (let first: usize = 0; first < count; first += blockTokens) {
    const token = start + first
    attendBlock(
      query + first * (side << 2), layer, position + first, min(blockTokens, count - first), reach,
      keys, values, out + token * (queryWidth << 2) + offset, stats + (token * heads + head << 3),
      scores,
    )
  }
}

/** Sixteen queries of a head from `first` on, or the last ones. */
function attendBlock(
  query: usize, layer: usize, first: usize, rows: usize, reach: usize, keys: usize, values: usize,
  out: usize, stats: usize, scores: usize,
): void {
  const stride = (context + blockTokens) << 2
  const seen = first + rows
  multiply(
    query, side << 2, keys, headSize << 5, 32, scores, stride, rows, headSize, (seen + 7) >> 3,
    false,
  )
  for (let row: usize = 0; row < rows; row++) {
    const length = first + row + 1
    softmax(
      scores + row * stride, firstSeen(layer, length - 1), length, seen, stats + row * (heads << 3),
    )
  }
  multiply(
    scores, stride, values, reach << 5, 32, out, queryWidth << 2, rows, seen, headSize >> 3, false,
  )
  for (let row: usize = 0; row < rows; row++) {
    scaleHead(out + row * (queryWidth << 2), load<f32>(stats + row * (heads << 3), 4))
  }
}
