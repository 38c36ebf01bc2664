// Gradients of causal attention. A training row is whole: its keys and values lie in its activations.

import { SPAN_COUNT, SPAN_START } from './layout'
import { multiply, multiplyTurned, packRows, packTurned } from './matmul'
import { rotate } from './pieces'
import { blockTokens, context, headSize, heads, scoreScale, width } from './plan'
import { exp4, madd, sumLanes } from './simd'

/** Queries whose shares of the keys' and values' gradients are summed at a time. */
const STRIP: usize = 64

/** Floats of scratch that `attendBackward` wants. */
export function backwardScratch(): usize {
  const length = context + blockTokens
  return length * headSize * 4 + 2 * STRIP * length + 2 * STRIP * headSize + length
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
 * output; probabilities are recomputed. Keys here are rotated already.
 */
function headBackward(
  qkv: usize, out: usize, stats: usize, dout: usize, dqkv: usize, count: usize, scratch: usize,
): void {
  const length = context + blockTokens
  const side = width * 12
  keyPanels = scratch
  turnedKeys = keyPanels + (length * headSize << 2)
  turnedValues = turnedKeys + (length * headSize << 2)
  const gathered = turnedValues + (length * headSize << 2)
  const weights = gathered + (length * headSize << 2)
  const slopes = weights + (STRIP * length << 2)
  const queryPanels = slopes + (STRIP * length << 2)
  const outPanels = queryPanels + (STRIP * headSize << 2)
  const panel = headSize << 5
  const key = qkv + (width << 2)
  const value = key + (width << 2)
  // Clear columns past the end: they are multiplied by zero, but zero times NaN is not zero.
  memory.fill(turnedKeys + (count >> 3) * panel, 0, panel)
  memory.fill(turnedValues + (count >> 3) * panel, 0, panel)
  packRows(key, side, keyPanels, count << 5, count, headSize)
  packTurned(key, side, turnedKeys, count, headSize)
  packTurned(value, side, turnedValues, count, headSize)
  for (let strip: usize = 0; strip < count; strip += STRIP) {
    const rows = min(STRIP, count - strip)
    for (let first = strip; first < strip + rows; first += blockTokens) {
      const offset = (first - strip) * (length << 2)
      queriesBackward(
        qkv, out, stats, dout, dqkv, count, first, weights + offset, slopes + offset,
      )
    }
    packRows(qkv + strip * side, side, queryPanels, rows << 5, rows, headSize)
    packRows(dout + strip * (width << 2), width << 2, outPanels, rows << 5, rows, headSize)
    addTurned(slopes, queryPanels, dqkv + (width << 2), strip, rows, gathered)
    addTurned(weights, outPanels, dqkv + (width << 3), strip, rows, gathered)
  }
}

// What `headBackward` has laid out for the queries of a head.
let keyPanels: usize = 0
let turnedKeys: usize = 0
let turnedValues: usize = 0

/** A block of queries from `first` on: their gradients, probabilities and gradients of scores. */
function queriesBackward(
  qkv: usize, out: usize, stats: usize, dout: usize, dqkv: usize, count: usize, first: usize,
  weights: usize, slopes: usize,
): void {
  const side = width * 12
  const stride = (context + blockTokens) << 2
  const panel = headSize << 5
  const rows = min(blockTokens, count - first)
  const keys = first + rows
  const padded = (keys + 7) & ~7
  const slope = dout + first * (width << 2)
  multiply(
    qkv + first * side, side, turnedKeys, panel, 32, weights, stride, rows, headSize, padded >> 3,
    false,
  )
  probabilities(weights, stride, first, rows, padded, stats + first * (heads << 3))
  multiply(
    slope, width << 2, turnedValues, panel, 32, slopes, stride, rows, headSize, padded >> 3, false,
  )
  scoreGradients(weights, slopes, stride, rows, padded, slope, out + first * (width << 2))
  multiply(
    slopes, stride, keyPanels, count << 5, 32, dqkv + first * side, side, rows, keys,
    headSize >> 3, false,
  )
}

/** target += aᵀ·panels for the keys of a strip of queries; a block's own keys begin with it. */
function addTurned(
  a: usize, b: usize, target: usize, strip: usize, rows: usize, buffer: usize,
): void {
  const side = width * 12
  const stride = (context + blockTokens) << 2
  const keys = strip + rows
  for (let key: usize = 0; key < keys; key += blockTokens) {
    const skipped = key > strip ? key - strip : 0
    const count = min(blockTokens, keys - key)
    const whole = count & ~3
    const from = a + skipped * stride + (key << 2)
    const panels = b + (skipped << 5)
    const to = target + key * side
    multiplyTurned(
      from, stride, panels, rows << 5, to, side, whole, rows - skipped, headSize >> 3,
    )
    if (whole < count) {
      addLast(
        from + (whole << 2), panels, rows, to + whole * side, count - whole, rows - skipped, buffer,
      )
    }
  }
}

/** The last few keys go through a buffer that is a tile long. */
function addLast(
  a: usize, b: usize, bRows: usize, target: usize, keys: usize, inner: usize, buffer: usize,
): void {
  const side = width * 12
  const size = headSize << 2
  memory.fill(buffer, 0, size << 2)
  for (let key: usize = 0; key < keys; key++) {
    memory.copy(buffer + key * size, target + key * side, size)
  }
  multiplyTurned(
    a, (context + blockTokens) << 2, b, bRows << 5, buffer, size, 4, inner, headSize >> 3,
  )
  for (let key: usize = 0; key < keys; key++) {
    memory.copy(target + key * side, buffer + key * size, size)
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
