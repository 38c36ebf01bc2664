// Causal attention over blocks of keys and values.
// A block holds, per layer: keys as [head][dimension][token], then values as
// [head][token][dimension]: both are right-hand panels of a product, side by side, and one query
// reads them from the first byte to the last.

import { SPAN_COUNT, SPAN_POSITION, SPAN_START, SPAN_TABLE } from './layout'
import { multiply } from './matmul'
import {
  blockHalf, blockTokens, context, firstSeen, group, headSize, heads, keyHeads, keyWidth, queryWidth,
  scoreScale, side,
} from './plan'
import { exp4, maxLanes, sumLanes } from './simd'

/** Where a sequence's block lies for a layer. */
// @ts-ignore: decorator
@inline
function blockAt(blocks: usize, table: usize, layer: usize, block: usize): usize {
  return blocks + <usize>load<u32>(table + (block << 2)) + layer * (blockHalf << 1)
}

/** Bytes from one dimension's keys to the next one's. */
const keyStep: usize = blockTokens << 2

/** Stores the keys and values of a span in its blocks. */
export function storeKeys(span: usize, layer: usize, blocks: usize, qkv: usize): void {
  const count = <usize>load<u32>(span, SPAN_COUNT)
  const first = <usize>load<u32>(span, SPAN_POSITION)
  const table = <usize>load<u32>(span, SPAN_TABLE)
  let key = qkv + (<usize>load<u32>(span, SPAN_START) * side + queryWidth << 2)
  for (let index: usize = 0; index < count; index++) {
    const position = first + index
    const block = blockAt(blocks, table, layer, position / blockTokens)
    const slot = position % blockTokens
    const target = block + (slot << 2)
    for (let at: usize = 0; at < keyWidth; at++) {
      store<f32>(target + at * keyStep, load<f32>(key + (at << 2)))
    }
    const values = block + blockHalf + slot * (headSize << 2)
    for (let head: usize = 0; head < keyHeads; head++) {
      const offset = head * (headSize << 2)
      memory.copy(values + offset * blockTokens, key + (keyWidth << 2) + offset, headSize << 2)
    }
    key += side << 2
  }
}

/**
 * Exponentials of the scores `from` to `length` in place, unnormalised, and zeros beside them up to
 * `reach`; keeps maximum and inverse sum.
 */
// @ts-ignore: decorator
@inline
export function softmax(
  scores: usize, from: usize, length: usize, reach: usize, stats: usize,
): void {
  // Whole blocks: constants of the exponential are made once for sixteen scores.
  const padded = scores + (((reach + blockTokens - 1) & ~(blockTokens - 1)) << 2)
  for (let at = scores; at < scores + (from << 2); at += 4) store<f32>(at, -1e30)
  for (let at = scores + (length << 2); at < padded; at += 4) store<f32>(at, -1e30)
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
      weights + (from << 2), stride, values + (head / group * blockTokens + slot) * (headSize << 2),
      32, headSize << 2, out, queryWidth << 2, rows, count, headSize >> 3, true,
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
  const size = headSize << 2
  const length = position + 1
  const from = firstSeen(layer, position)
  const first = from & ~(blockTokens - 1)
  for (let key = first; key < length; key += blockTokens) {
    const block = blockAt(blocks, table, layer, key / blockTokens)
    for (let head: usize = 0; head < heads; head += group) {
      multiply(
        query + head * size, size, block + head / group * headSize * keyStep, 32, keyStep,
        scores + head * stride + (key << 2), stride, group, headSize, 2, false,
      )
    }
  }
  for (let head: usize = 0; head < heads; head++) {
    softmax(scores + head * stride, from, length, length, stats + (head << 3))
  }
  memory.fill(out, 0, queryWidth << 2)
  for (let key = first; key < length; key += blockTokens) {
    const count = min(blockTokens, length - key)
    let values = blockAt(blocks, table, layer, key / blockTokens) + blockHalf
    for (let head: usize = 0; head < heads; head += group) {
      multiply(
        scores + head * stride + (key << 2), stride, values, 32, size, out + head * size, size, group,
        count, headSize >> 3, true,
      )
      values += blockTokens * size
    }
  }
  for (let head: usize = 0; head < heads; head++) {
    scaleHead(out + head * size, load<f32>(stats + (head << 3), 4))
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
  const first = firstSeen(layer, position) & ~(blockTokens - 1)
  for (let key = first; key < position + rows; key += blockTokens) {
    const keys = blockAt(blocks, table, layer, key / blockTokens) + head / group * headSize * keyStep
    const wanted: usize = key + 8 < position + rows ? 2 : 1
    multiply(
      query, side << 2, keys, 32, keyStep, scores + (key << 2), stride, rows, headSize, wanted,
      false,
    )
  }
  for (let row: usize = 0; row < rows; row++) {
    const length = position + row + 1
    softmax(
      scores + row * stride, firstSeen(layer, position + row), length, length,
      stats + row * (heads << 3),
    )
    memory.fill(out + row * (queryWidth << 2), 0, headSize << 2)
  }
  gatherValues(scores, stride, rows, first, position + 1, blocks, table, layer, head, out)
  for (let row: usize = 1; row < rows; row++) {
    gatherValues(
      scores + row * stride, stride, 1, position + 1, position + row + 1,
      blocks, table, layer, head, out + row * (queryWidth << 2),
    )
  }
  for (let row: usize = 0; row < rows; row++) {
    scaleHead(out + row * (queryWidth << 2), load<f32>(stats + row * (heads << 3), 4))
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
    const query = qkv + token * (side << 2)
    const target = out + token * (queryWidth << 2)
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
