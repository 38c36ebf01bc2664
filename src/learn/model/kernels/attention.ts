// Causal attention over blocks of keys and values.
// A block holds, per layer: keys as [head][dimension][token], then values as
// [head][token][dimension]: both are right-hand panels of a product, side by side, and one query
// reads them from the first byte to the last.

import { SPAN_COUNT, SPAN_POSITION, SPAN_START, SPAN_TABLE } from './layout'
import { fewRows, multiply, tile1by2 } from './matmul'
import { rotate } from './pieces'
import { blockHalf, blockTokens, context, headSize, heads, scoreScale, width } from './plan'
import { exp4, maxLanes, sumLanes } from './simd'

/** Where a sequence's block lies for a layer. */
// @ts-ignore: decorator
@inline
function blockAt(blocks: usize, table: usize, layer: usize, block: usize): usize {
  return blocks + <usize>load<u32>(table + (block << 2)) + layer * (blockHalf << 1)
}

/** Bytes from one dimension's keys to the next one's. */
const keyStep: usize = blockTokens << 2

/** Rotates queries and keys of a span in place and stores keys and values in its blocks. */
export function storeKeys(span: usize, layer: usize, blocks: usize, qkv: usize): void {
  const count = <usize>load<u32>(span, SPAN_COUNT)
  const first = <usize>load<u32>(span, SPAN_POSITION)
  const table = <usize>load<u32>(span, SPAN_TABLE)
  let row = qkv + <usize>load<u32>(span, SPAN_START) * (width * 12)
  for (let index: usize = 0; index < count; index++) {
    const position = first + index
    const key = row + (width << 2)
    rotate(row, position, 1)
    rotate(key, position, 1)
    const block = blockAt(blocks, table, layer, position / blockTokens)
    const slot = position % blockTokens
    const target = block + (slot << 2)
    for (let at: usize = 0; at < width; at++) {
      store<f32>(target + at * keyStep, load<f32>(key + (at << 2)))
    }
    const values = block + blockHalf + slot * (headSize << 2)
    for (let head: usize = 0; head < heads; head++) {
      const offset = head * (headSize << 2)
      memory.copy(values + offset * blockTokens, key + (width << 2) + offset, headSize << 2)
    }
    row += width * 12
  }
}

/** Exponentials of `length` scores in place, unnormalised; keeps maximum and inverse sum. */
// @ts-ignore: decorator
@inline
export function softmax(scores: usize, length: usize, stats: usize): f32 {
  const end = scores + (length << 2)
  // Whole blocks: constants of the exponential are made once for sixteen scores.
  const padded = scores + (((length + blockTokens - 1) & ~(blockTokens - 1)) << 2)
  for (let at = end; at < padded; at += 4) store<f32>(at, -1e30)
  const scale = f32x4.splat(scoreScale)
  let peak = f32x4.splat(-1e30)
  for (let at = scores; at < padded; at += 16) {
    const value = f32x4.mul(v128.load(at), scale)
    v128.store(at, value)
    peak = f32x4.pmax(peak, value)
  }
  const maximum = maxLanes(peak)
  const shift = f32x4.splat(maximum)
  let sum = f32x4.splat(0)
  for (let at = scores; at < padded; at += 64) {
    const a = exp4(f32x4.sub(v128.load(at), shift))
    const b = exp4(f32x4.sub(v128.load(at, 16), shift))
    const c = exp4(f32x4.sub(v128.load(at, 32), shift))
    const d = exp4(f32x4.sub(v128.load(at, 48), shift))
    v128.store(at, a)
    v128.store(at, b, 16)
    v128.store(at, c, 32)
    v128.store(at, d, 48)
    sum = f32x4.add(f32x4.add(f32x4.add(f32x4.add(sum, a), b), c), d)
  }
  const inverse = <f32>1 / sumLanes(sum)
  store<f32>(stats, maximum)
  store<f32>(stats, inverse, 4)
  return inverse
}

/** out += weights[from..to) · values, rows of weights `stride` apart, walking the blocks. */
function gatherValues(
  weights: usize, stride: usize, rows: usize, from: usize, to: usize,
  blocks: usize, table: usize, layer: usize, head: usize, out: usize,
): void {
  while (from < to) {
    const slot = from % blockTokens
    const count = min(blockTokens - slot, to - from)
    const values = blockAt(blocks, table, layer, from / blockTokens) + blockHalf
    multiply(
      weights + (from << 2), stride, values + (head * blockTokens + slot) * (headSize << 2), 32,
      headSize << 2, out, width << 2, rows, count, headSize >> 3, true,
    )
    from += count
  }
}

/**
 * Attention of one query, all heads of a block at a time: keys and values are read once, in the
 * order in which they lie in memory, and that reading is what takes the time.
 */
function attendOne(
  query: usize, position: usize, blocks: usize, table: usize, layer: usize, out: usize,
  stats: usize, scores: usize,
): void {
  const stride = (context + blockTokens) << 2
  const length = position + 1
  for (let key: usize = 0; key < length; key += blockTokens) {
    const block = blockAt(blocks, table, layer, key / blockTokens)
    for (let head: usize = 0; head < heads; head++) {
      tile1by2(
        query + head * (headSize << 2), block + head * headSize * keyStep, 32, keyStep, headSize,
        scores + head * stride + (key << 2), false,
      )
    }
  }
  for (let head: usize = 0; head < heads; head++) {
    softmax(scores + head * stride, length, stats + (head << 3))
  }
  memory.fill(out, 0, width << 2)
  for (let key: usize = 0; key < length; key += blockTokens) {
    const count = min(blockTokens, length - key)
    let values = blockAt(blocks, table, layer, key / blockTokens) + blockHalf
    for (let head: usize = 0; head < heads; head++) {
      fewRows(
        scores + head * stride + (key << 2), 0, values, 32, headSize << 2,
        out + head * (headSize << 2), 0, 1, count, headSize >> 3, true,
      )
      values += blockTokens * (headSize << 2)
    }
  }
  for (let head: usize = 0; head < heads; head++) {
    scaleHead(out + head * (headSize << 2), load<f32>(stats + (head << 3), 4))
  }
}

/** Multiplies one head of a row by a number. */
// @ts-ignore: decorator
@inline
export function scaleHead(row: usize, factor: f32): void {
  const factors = f32x4.splat(factor)
  for (let at: usize = 0; at < headSize << 2; at += 16) {
    v128.store(row + at, f32x4.mul(v128.load(row + at), factors))
  }
}

/** Attention of four successive queries from `position` on, for one head. */
function attendTile(
  query: usize, position: usize, blocks: usize, table: usize,
  layer: usize, head: usize, out: usize, stats: usize, scores: usize,
): void {
  const stride = (context + blockTokens) << 2
  const rows: usize = 4
  for (let key: usize = 0; key < position + rows; key += blockTokens) {
    const keys = blockAt(blocks, table, layer, key / blockTokens) + head * headSize * keyStep
    const wanted: usize = key + 8 < position + rows ? 2 : 1
    multiply(
      query, width * 12, keys, 32, keyStep, scores + (key << 2), stride, rows, headSize, wanted,
      false,
    )
  }
  for (let row: usize = 0; row < rows; row++) {
    softmax(scores + row * stride, position + row + 1, stats + row * (heads << 3))
    memory.fill(out + row * (width << 2), 0, headSize << 2)
  }
  gatherValues(scores, stride, rows, 0, position + 1, blocks, table, layer, head, out)
  for (let row: usize = 1; row < rows; row++) {
    gatherValues(
      scores + row * stride, stride, 1, position + 1, position + row + 1,
      blocks, table, layer, head, out + row * (width << 2),
    )
  }
  for (let row: usize = 0; row < rows; row++) {
    scaleHead(out + row * (width << 2), load<f32>(stats + row * (heads << 3), 4))
  }
}

/** Attention of a span's queries over everything before and including themselves. */
export function attend(
  span: usize, layer: usize, blocks: usize, qkv: usize, out: usize, stats: usize, scores: usize,
): void {
  const count = <usize>load<u32>(span, SPAN_COUNT)
  const first = <usize>load<u32>(span, SPAN_POSITION)
  const table = <usize>load<u32>(span, SPAN_TABLE)
  const start = <usize>load<u32>(span, SPAN_START)
  let index: usize = 0
  while (index < count) {
    const token = start + index
    const query = qkv + token * (width * 12)
    const target = out + token * (width << 2)
    const kept = stats + (token * heads << 3)
    if (index + 4 > count) {
      attendOne(query, first + index, blocks, table, layer, target, kept, scores)
      index++
      continue
    }
    for (let head: usize = 0; head < heads; head++) {
      const offset = head * (headSize << 2)
      attendTile(
        query + offset, first + index, blocks, table, layer, head, target + offset,
        kept + (head << 3), scores,
      )
    }
    index += 4
  }
}
