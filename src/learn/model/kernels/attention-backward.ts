// Gradients of causal attention over spans. A span is left when all that follow it have been: the
// places up to its end then hold its own path again, and gradients of its keys and values are complete
// as far as this job goes. What belongs to tokens before the job's first span is handed on.

import { attended, dOut, dProjected, layerStride, statistics } from './activations'
import { field, reachOf, rowsOf } from './attention-rows'
import {
  HEIR_BYTES, HEIR_COUNT, HEIR_FROM, HEIR_START, HEIR_STRIDE, JOB_BEFORE, JOB_HEIRS, JOB_HEIR_LIST,
  JOB_SPANS, JOB_SPAN_LIST, SPAN_BYTES, SPAN_COUNT, SPAN_POSITION, SPAN_START, SPAN_TABLE,
} from './layout'
import { multiply, multiplyTurned, packRows, packTurnedAt } from './matmul'
import {
  blockTokens, context, firstSeen, group, headSize, heads, keyHeads, keyWidth, queryWidth, scoreScale,
  side,
} from './plan'
import { exp4, madd, sumLanes } from './simd'

/** Queries whose shares of the keys' and values' gradients are summed at a time. */
const STRIP: usize = 64

/** Floats of scratch that `attendBackward` wants. */
export function backwardScratch(): usize {
  const length = context + blockTokens
  return length * headSize * 5 + 2 * STRIP * length + 2 * STRIP * headSize
}

// What is laid out for one head of keys and values, by position, and the gradients so far.
let reach: usize = 0
let stride: usize = 0
let keyPanels: usize = 0
let turnedKeys: usize = 0
let turnedValues: usize = 0
let dKeys: usize = 0
let dValues: usize = 0
let weights: usize = 0
let slopes: usize = 0
let queryPanels: usize = 0
let outPanels: usize = 0

function placeAll(scratch: usize, positions: usize): void {
  const size = positions * headSize << 2
  reach = positions
  stride = (context + blockTokens) << 2
  keyPanels = scratch
  turnedKeys = keyPanels + size
  turnedValues = turnedKeys + size
  dKeys = turnedValues + size
  dValues = dKeys + size
  weights = dValues + size
  slopes = weights + STRIP * stride
  queryPanels = slopes + STRIP * stride
  outPanels = queryPanels + (STRIP * headSize << 2)
}

/**
 * Probabilities of a block of queries from kept statistics; zero for what a query does not see, up to
 * `padded`.
 */
function probabilities(
  scores: usize, layer: usize, first: usize, rows: usize, padded: usize, stats: usize,
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
    memory.fill(scores, 0, firstSeen(layer, length - 1) << 2)
    memory.fill(scores + (length << 2), 0, (padded - length) << 2)
    scores += stride
    stats += heads << 3
  }
}

/** dS = P (dP − Σ dO O) · scale, over dP. */
function scoreGradients(
  weight: usize, slope: usize, rows: usize, padded: usize, dout: usize, out: usize,
): void {
  const scale = f32x4.splat(scoreScale)
  for (let row: usize = 0; row < rows; row++) {
    let sum = f32x4.splat(0)
    for (let at: usize = 0; at < headSize << 2; at += 16) {
      sum = madd(v128.load(dout + at), v128.load(out + at), sum)
    }
    const along = f32x4.splat(sumLanes(sum))
    for (let at: usize = 0; at < padded << 2; at += 16) {
      const steep = f32x4.mul(f32x4.sub(v128.load(slope + at), along), scale)
      v128.store(slope + at, f32x4.mul(v128.load(weight + at), steep))
    }
    weight += stride
    slope += stride
    dout += queryWidth << 2
    out += queryWidth << 2
  }
}

/** Lays a span's keys and values out at their positions. */
function enter(span: usize, layer: usize, keyHead: usize): void {
  const key = rowsOf(span, layer) + (queryWidth + keyHead * headSize << 2)
  const place = field(span, SPAN_POSITION)
  const count = field(span, SPAN_COUNT)
  packRows(key, side << 2, keyPanels + (place << 5), reach << 5, count, headSize)
  packTurnedAt(key, side << 2, turnedKeys, place, count, headSize)
  packTurnedAt(key + (keyWidth << 2), side << 2, turnedValues, place, count, headSize)
}

/** Gradients of a span's queries, and of all keys and values that they see. */
function leave(span: usize, layer: usize, keyHead: usize): void {
  const count = field(span, SPAN_COUNT)
  const position = field(span, SPAN_POSITION)
  // Clear columns past the end: they are multiplied by zero, but zero times NaN is not zero.
  for (let place = position + count; place & 7; place++) {
    const at = (place >> 3) * (headSize << 5) + ((place & 7) << 2)
    for (let dimension: usize = 0; dimension < headSize; dimension++) {
      store<f32>(turnedKeys + at + (dimension << 5), 0)
      store<f32>(turnedValues + at + (dimension << 5), 0)
    }
  }
  for (let head = keyHead * group; head < (keyHead + 1) * group; head++) {
    for (let strip: usize = 0; strip < count; strip += STRIP) {
      stripBackward(span, layer, head, strip, min(STRIP, count - strip))
    }
  }
  const token = field(span, SPAN_START)
  const key = dProjected + (token * side + queryWidth + keyHead * headSize << 2)
  moveOut(position, count, key, side << 2, keyWidth << 2)
}

/** Moves gradients of keys and values of some positions to rows, and clears them. */
function moveOut(
  position: usize, count: usize, keys: usize, rowBytes: usize, valuesAfter: usize,
): void {
  const size = headSize << 2
  for (let row: usize = 0; row < count; row++) {
    const at = (position + row) * size
    memory.copy(keys + row * rowBytes, dKeys + at, size)
    memory.copy(keys + row * rowBytes + valuesAfter, dValues + at, size)
  }
  memory.fill(dKeys + position * size, 0, count * size)
  memory.fill(dValues + position * size, 0, count * size)
}

/** Gradients of up to `STRIP` queries of a head, `strip` tokens behind the span's first. */
function stripBackward(span: usize, layer: usize, head: usize, strip: usize, rows: usize): void {
  const offset = head * (headSize << 2)
  const token = field(span, SPAN_START) + strip
  const position = field(span, SPAN_POSITION) + strip
  const query = rowsOf(span, layer) + strip * (side << 2) + offset
  const dout = dOut + token * (queryWidth << 2) + offset
  const padded = position + rows + 7 & ~7
  for (let first: usize = 0; first < rows; first += blockTokens) {
    blockBackward(
      query + first * (side << 2), layer, head, token + first, position + first,
      min(blockTokens, rows - first), padded, first * stride,
    )
  }
  packRows(query, side << 2, queryPanels, rows << 5, rows, headSize)
  packRows(dout, queryWidth << 2, outPanels, rows << 5, rows, headSize)
  addTurned(slopes, queryPanels, dKeys, position, rows)
  addTurned(weights, outPanels, dValues, position, rows)
}

/** A block of queries: their gradients, probabilities and gradients of scores. */
function blockBackward(
  query: usize, layer: usize, head: usize, token: usize, first: usize, rows: usize, padded: usize,
  offset: usize,
): void {
  const panel = headSize << 5
  const keys = first + rows
  const within = head * (headSize << 2)
  const dout = dOut + token * (queryWidth << 2) + within
  const out = attended + layer * layerStride + token * (queryWidth << 2) + within
  const stats = statistics + layer * layerStride + (token * heads + head << 3)
  multiply(
    query, side << 2, turnedKeys, panel, 32, weights + offset, stride, rows, headSize,
    (keys + 7) >> 3, false,
  )
  probabilities(weights + offset, layer, first, rows, padded, stats)
  multiply(
    dout, queryWidth << 2, turnedValues, panel, 32, slopes + offset, stride, rows, headSize,
    padded >> 3, false,
  )
  scoreGradients(weights + offset, slopes + offset, rows, padded, dout, out)
  multiply(
    slopes + offset, stride, keyPanels, reach << 5, 32, dProjected + token * (side << 2) + within,
    side << 2, rows, keys, headSize >> 3, false,
  )
}

/** target += aᵀ·panels for the keys that a strip of queries sees, whole tiles of them. */
function addTurned(a: usize, b: usize, target: usize, position: usize, rows: usize): void {
  const keys = position + rows
  for (let key: usize = 0; key < keys; key += blockTokens) {
    const skipped = key > position ? key - position : 0
    const count = min(blockTokens, keys - key) + 3 & ~3
    multiplyTurned(
      a + skipped * stride + (key << 2), stride, b + (skipped << 5), rows << 5,
      target + key * (headSize << 2), headSize << 2, count, rows - skipped, headSize >> 3,
    )
  }
}

/** Gradients of the rotated queries, keys and values of a job's spans in one layer. */
export function attendBackward(job: usize, layer: usize, scratch: usize): void {
  const list = field(job, JOB_SPAN_LIST)
  const end = list + field(job, JOB_SPANS) * SPAN_BYTES
  placeAll(scratch, reachOf(job))
  for (let keyHead: usize = 0; keyHead < keyHeads; keyHead++) {
    memory.fill(dKeys, 0, reach * headSize << 3)
    let open = field(list, SPAN_TABLE)
    for (let before = open; before != 0; before = field(before, SPAN_TABLE)) {
      enter(before, layer, keyHead)
    }
    for (let span = list; span < end; span += SPAN_BYTES) {
      leaveAll(job, open, field(span, SPAN_TABLE), layer, keyHead)
      enter(span, layer, keyHead)
      open = span
    }
    leaveAll(job, open, 0, layer, keyHead)
  }
}

/** Leaves spans from `open` up to one that still goes on. */
function leaveAll(job: usize, open: usize, ancestor: usize, layer: usize, keyHead: usize): void {
  const list = field(job, JOB_SPAN_LIST)
  const end = list + field(job, JOB_SPANS) * SPAN_BYTES
  for (; open != ancestor; open = field(open, SPAN_TABLE)) {
    if (open >= list && open < end) leave(open, layer, keyHead)
    else handOn(job, open, layer, keyHead)
  }
}

/** Keeps the gradients of keys and values of a span of another job for that job. */
function handOn(job: usize, span: usize, layer: usize, keyHead: usize): void {
  const before = <usize>field(field(job, JOB_SPAN_LIST), SPAN_POSITION)
  const position = field(span, SPAN_POSITION)
  const row = (layer & 1) * before + position
  const rows = field(job, JOB_BEFORE) + row * (keyWidth << 3) + keyHead * (headSize << 2)
  moveOut(position, field(span, SPAN_COUNT), rows, keyWidth << 3, keyWidth << 2)
}

/** Adds what other jobs computed for the keys and values of this one. */
export function addHeirs(job: usize, layer: usize): void {
  let heir = field(job, JOB_HEIR_LIST)
  for (let index = field(job, JOB_HEIRS); index > 0; index--) {
    const from = field(heir, HEIR_FROM) + (layer & 1) * field(heir, HEIR_STRIDE)
    for (let row: usize = 0; row < field(heir, HEIR_COUNT); row++) {
      const source = from + row * (keyWidth << 3)
      const target =
        dProjected + ((field(heir, HEIR_START) + row) * side + queryWidth << 2)
      for (let at: usize = 0; at < keyWidth << 3; at += 16) {
        v128.store(target + at, f32x4.add(v128.load(target + at), v128.load(source + at)))
      }
    }
    heir += HEIR_BYTES
  }
}
