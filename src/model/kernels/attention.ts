// Causal attention over blocks of keys and values.
// A block holds, per layer: keys as [head][dimension][token], then values as
// [head][token][dimension]: both are right-hand panels of a product, side by side, and one query
// reads them from the first byte to the last.

import { SPAN_COUNT, SPAN_POSITION, SPAN_START, SPAN_TABLE } from './layout'
import { multiply, multiplyTurned, packRows, packTurned } from './matmul'
import { rotate } from './pieces'
import { blockHalf, blockTokens, context, headSize, heads, scoreScale, width } from './plan'
import { exp4, madd, maxLanes, sumLanes } from './simd'

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
function softmax(scores: usize, length: usize, stats: usize): f32 {
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
      multiply(
        query + head * (headSize << 2), 0, block + head * headSize * keyStep, 32, keyStep,
        scores + head * stride + (key << 2), 0, 1, headSize, 2, false,
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
      multiply(
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
function scaleHead(row: usize, factor: f32): void {
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

/** Floats of scratch that `attendBackward` wants. */
export function backwardScratch(): usize {
  const length = context + blockTokens
  return length * headSize * 4 + 2 * blockTokens * length + 2 * blockTokens * headSize + length
}

/** Probabilities of a block of queries from kept statistics; zero above the diagonal. */
function probabilities(
  scores: usize, stride: usize, first: usize, rows: usize, padded: usize, stats: usize,
): void {
  const scale = f32x4.splat(scoreScale)
  for (let row: usize = 0; row < rows; row++) {
    const maximum = f32x4.splat(load<f32>(stats))
    const inverse = f32x4.splat(load<f32>(stats, 4))
    const length = first + row + 1
    for (let at = scores; at < scores + (length << 2); at += 64) {
      const a = exp4(f32x4.sub(f32x4.mul(v128.load(at), scale), maximum))
      const b = exp4(f32x4.sub(f32x4.mul(v128.load(at, 16), scale), maximum))
      const c = exp4(f32x4.sub(f32x4.mul(v128.load(at, 32), scale), maximum))
      const d = exp4(f32x4.sub(f32x4.mul(v128.load(at, 48), scale), maximum))
      v128.store(at, f32x4.mul(a, inverse))
      v128.store(at, f32x4.mul(b, inverse), 16)
      v128.store(at, f32x4.mul(c, inverse), 32)
      v128.store(at, f32x4.mul(d, inverse), 48)
    }
    memory.fill(scores + (length << 2), 0, (padded - length) << 2)
    scores += stride
    stats += heads << 3
  }
}

/** dS = P (dP − Σ dO O) · scale, over dP. */
function scoreGradients(
  weights: usize, slopes: usize, stride: usize, rows: usize, padded: usize, dout: usize, out: usize,
): void {
  const scale = f32x4.splat(scoreScale)
  for (let row: usize = 0; row < rows; row++) {
    let sum = f32x4.splat(0)
    for (let at: usize = 0; at < headSize << 2; at += 16) {
      sum = madd(v128.load(dout + at), v128.load(out + at), sum)
    }
    const along = f32x4.splat(sumLanes(sum))
    for (let at: usize = 0; at < padded << 2; at += 16) {
      const slope = f32x4.mul(f32x4.sub(v128.load(slopes + at), along), scale)
      v128.store(slopes + at, f32x4.mul(v128.load(weights + at), slope))
    }
    weights += stride
    slopes += stride
    dout += width << 2
    out += width << 2
  }
}

/**
 * Gradients of a whole row's queries, keys and values for one head, from the gradient of its
 * output; probabilities are recomputed, sixteen queries at a time. Keys here are rotated already.
 */
function headBackward(
  qkv: usize, out: usize, stats: usize, dout: usize, dqkv: usize, count: usize, scratch: usize,
): void {
  const length = context + blockTokens
  const side = width * 12
  const keyPanels = scratch
  const turnedKeys = keyPanels + (length * headSize << 2)
  const turnedValues = turnedKeys + (length * headSize << 2)
  const gathered = turnedValues + (length * headSize << 2)
  const weights = gathered + (length * headSize << 2)
  const slopes = weights + (blockTokens * length << 2)
  const queryPanels = slopes + (blockTokens * length << 2)
  const outPanels = queryPanels + (blockTokens * headSize << 2)
  const stride = length << 2
  const panel = headSize << 5
  const key = qkv + (width << 2)
  const value = key + (width << 2)
  // Clear columns past the end: they are multiplied by zero, but zero times NaN is not zero.
  memory.fill(turnedKeys + (count >> 3) * panel, 0, panel)
  memory.fill(turnedValues + (count >> 3) * panel, 0, panel)
  packRows(key, side, keyPanels, count << 5, count, headSize)
  packTurned(key, side, turnedKeys, count, headSize)
  packTurned(value, side, turnedValues, count, headSize)
  for (let first: usize = 0; first < count; first += blockTokens) {
    const rows = min(blockTokens, count - first)
    const keys = first + rows
    const padded = (keys + 7) & ~7
    const query = qkv + first * side
    const slope = dout + first * (width << 2)
    multiply(
      query, side, turnedKeys, panel, 32, weights, stride, rows, headSize, padded >> 3, false,
    )
    probabilities(weights, stride, first, rows, padded, stats + first * (heads << 3))
    multiply(
      slope, width << 2, turnedValues, panel, 32, slopes, stride, rows, headSize, padded >> 3,
      false,
    )
    scoreGradients(weights, slopes, stride, rows, padded, slope, out + first * (width << 2))
    multiply(
      slopes, stride, keyPanels, count << 5, 32, dqkv + first * side, side, rows, keys,
      headSize >> 3, false,
    )
    packRows(query, side, queryPanels, rows << 5, rows, headSize)
    packRows(slope, width << 2, outPanels, rows << 5, rows, headSize)
    addTurned(slopes, stride, queryPanels, dqkv + (width << 2), keys, rows, gathered)
    addTurned(weights, stride, outPanels, dqkv + (width << 3), keys, rows, gathered)
  }
}

/** target[0..keys) += aᵀ·panels; the last few keys go through a buffer that is a tile long. */
function addTurned(
  a: usize, aStride: usize, b: usize, target: usize, keys: usize, rows: usize, buffer: usize,
): void {
  const side = width * 12
  const whole = keys & ~3
  multiplyTurned(a, aStride, b, rows << 5, target, side, whole, rows, headSize >> 3)
  if (whole == keys) return
  const stride = headSize << 2
  memory.fill(buffer, 0, stride << 2)
  for (let key = whole; key < keys; key++) {
    memory.copy(buffer + (key - whole) * stride, target + key * side, stride)
  }
  multiplyTurned(
    a + (whole << 2), aStride, b, rows << 5, buffer, stride, 4, rows, headSize >> 3,
  )
  for (let key = whole; key < keys; key++) {
    memory.copy(target + key * side, buffer + (key - whole) * stride, stride)
  }
}

/** Gradients of a span's queries, keys and values before rotation; the span starts at position 0. */
export function attendBackward(
  span: usize, qkv: usize, out: usize, stats: usize, dout: usize, dqkv: usize, scratch: usize,
): void {
  const count = <usize>load<u32>(span, SPAN_COUNT)
  const start = <usize>load<u32>(span, SPAN_START)
  const side = width * 12
  const rows = dqkv + start * side
  memory.fill(rows, 0, count * side)
  for (let head: usize = 0; head < heads; head++) {
    const offset = head * (headSize << 2)
    headBackward(
      qkv + start * side + offset, out + start * (width << 2) + offset,
      stats + (start * heads + head << 3), dout + start * (width << 2) + offset,
      rows + offset, count, scratch,
    )
  }
  for (let index: usize = 0; index < count; index++) {
    rotate(rows + index * side, index, -1)
    rotate(rows + index * side + (width << 2), index, -1)
  }
}
