// Causal attention of whole rows, as training and scoring have them: the row's own keys and values
// are laid out for one head at a time, and sixteen queries use them together. Sums have the same
// order as over blocks; what a query must not see has the weight zero.

import { scaleHead, softmax } from './attention'
import { SPAN_COUNT, SPAN_START } from './layout'
import { multiply, packRows, packTurned } from './matmul'
import { rotate } from './pieces'
import { blockTokens, context, headSize, heads, width } from './plan'

/** Floats of scratch that `attendRow` wants for keys and values. */
export function rowScratch(): usize {
  return 2 * (context + blockTokens) * headSize
}

/** Attention of a span that is a whole row; rotates its queries and keys in place. */
export function attendRow(
  span: usize, qkv: usize, out: usize, stats: usize, scores: usize, scratch: usize,
): void {
  const count = <usize>load<u32>(span, SPAN_COUNT)
  const start = <usize>load<u32>(span, SPAN_START)
  const side = width * 12
  const rows = qkv + start * side
  for (let index: usize = 0; index < count; index++) {
    rotate(rows + index * side, index, 1)
    rotate(rows + index * side + (width << 2), index, 1)
  }
  for (let head: usize = 0; head < heads; head++) {
    const offset = head * (headSize << 2)
    attendHead(
      rows + offset, count, out + start * (width << 2) + offset,
      stats + (start * heads + head << 3), scores, scratch,
    )
  }
}

/** One head of a row. */
function attendHead(
  query: usize, count: usize, out: usize, stats: usize, scores: usize, scratch: usize,
): void {
  const side = width * 12
  const key = query + (width << 2)
  const values = scratch + ((context + blockTokens) * headSize << 2)
  packTurned(key, side, scratch, count, headSize)
  packRows(key + (width << 2), side, values, count << 5, count, headSize)
  for (let first: usize = 0; first < count; first += blockTokens) {
    attendBlock(
      query + first * side, first, count, scratch, values, out + first * (width << 2),
      stats + first * (heads << 3), scores,
    )
  }
}

/** Sixteen queries of a head from `first` on, or the last ones. */
function attendBlock(
  query: usize, first: usize, count: usize, keys: usize, values: usize, out: usize, stats: usize,
  scores: usize,
): void {
  const stride = (context + blockTokens) << 2
  const rows = min(blockTokens, count - first)
  const seen = first + rows
  multiply(
    query, width * 12, keys, headSize << 5, 32, scores, stride, rows, headSize, (seen + 7) >> 3,
    false,
  )
  for (let row: usize = 0; row < rows; row++) {
    softmax(scores + row * stride, first + row + 1, stats + row * (heads << 3))
  }
  multiply(
    scores, stride, values, count << 5, 32, out, width << 2, rows, seen, headSize >> 3, false,
  )
  for (let row: usize = 0; row < rows; row++) {
    scaleHead(out + row * (width << 2), load<f32>(stats + row * (heads << 3), 4))
  }
}
