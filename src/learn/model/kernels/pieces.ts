// The parts of a layer that are not matrix products: norms, rotary positions, the gated unit.

import { ACTIVATION, EPSILON, KEY_NORM, QUERY_NORM } from './layout'
import {
  cosines, fixedOf, float, headSize, heads, hidden, keyHeads, keyWidth, queryWidth, side, sines, width,
  word,
} from './plan'
import { madd, sigmoid4, sumLanes } from './simd'

/** 1 / √(mean x² + ε) of `size` numbers. */
// @ts-ignore: decorator
@inline
function inverseRoot(x: usize, size: usize): f32 {
  let sum = f32x4.splat(0)
  for (let at: usize = 0; at < size << 2; at += 16) {
    const value = v128.load(x + at)
    sum = madd(value, value, sum)
  }
  return <f32>1 / sqrt<f32>(sumLanes(sum) / <f32>size + float(EPSILON))
}

/** y = x r w for `size` numbers with their r known. */
// @ts-ignore: decorator
@inline
function scaleRow(x: usize, weight: usize, y: usize, r: f32, size: usize): void {
  const factor = f32x4.splat(r)
  for (let at: usize = 0; at < size << 2; at += 16) {
    v128.store(y + at, f32x4.mul(f32x4.mul(v128.load(x + at), factor), v128.load(weight + at)))
  }
}

/** Root-mean-square norm of `rows` rows; the inverse roots are kept, one float each. */
export function norm(x: usize, weight: usize, y: usize, roots: usize, rows: usize): void {
  for (let row: usize = 0; row < rows; row++) {
    const r = inverseRoot(x, width)
    store<f32>(roots, r)
    scaleRow(x, weight, y, r, width)
    x += width << 2
    y += width << 2
    roots += 4
  }
}

/** The norm again, from kept inverse roots. */
export function normAgain(x: usize, weight: usize, y: usize, roots: usize, rows: usize): void {
  for (let row: usize = 0; row < rows; row++) {
    scaleRow(x, weight, y, load<f32>(roots), width)
    x += width << 2
    y += width << 2
    roots += 4
  }
}

/** dx += r (w dy − x r² mean(w dy x)) and, unless it is 0, dw += dy x r, for one row. */
export function normBackward(
  x: usize, weight: usize, r: f32, dy: usize, dx: usize, dweight: usize,
): void {
  let sum = f32x4.splat(0)
  for (let at: usize = 0; at < width << 2; at += 16) {
    const weighted = f32x4.mul(v128.load(dy + at), v128.load(weight + at))
    sum = madd(weighted, v128.load(x + at), sum)
  }
  const along = f32x4.splat(-(sumLanes(sum) * r * r * r) / <f32>width)
  const factor = f32x4.splat(r)
  for (let at: usize = 0; at < width << 2; at += 16) {
    const value = v128.load(x + at)
    const slope = v128.load(dy + at)
    const straight = f32x4.mul(f32x4.mul(slope, v128.load(weight + at)), factor)
    v128.store(dx + at, f32x4.add(v128.load(dx + at), madd(value, along, straight)))
    if (dweight == 0) continue
    const scaled = f32x4.mul(slope, factor)
    v128.store(dweight + at, madd(scaled, value, v128.load(dweight + at)))
  }
}

/**
 * Turns the pairs (i, i + half) of every head of queries and keys of one row by the angles of its
 * position; `sign` −1 turns back, which is also the gradient's way.
 */
export function rotate(row: usize, position: usize, sign: f32): void {
  const half = headSize << 1
  const cosine = cosines + position * half
  const sine = sines + position * half
  const direction = f32x4.splat(sign)
  for (let head: usize = 0; head < heads + keyHeads; head++) {
    for (let at: usize = 0; at < half; at += 16) {
      const c = v128.load(cosine + at)
      const s = f32x4.mul(v128.load(sine + at), direction)
      const first = v128.load(row + at)
      const second = v128.load(row + at + half)
      v128.store(row + at, f32x4.sub(f32x4.mul(first, c), f32x4.mul(second, s)))
      v128.store(row + at + half, f32x4.add(f32x4.mul(second, c), f32x4.mul(first, s)))
    }
    row += headSize << 2
  }
}

/** The norm's weight for a head of queries, or behind them of keys. */
// @ts-ignore: decorator
@inline
function headWeight(layer: usize, head: usize): usize {
  return fixedOf(layer) + word(head < heads ? QUERY_NORM : KEY_NORM)
}

/** Norms every head of queries and keys; what they were before is kept in `raw`. */
export function normHeads(layer: usize, rows: usize, qkv: usize, raw: usize): void {
  const size = queryWidth + keyWidth << 2
  for (let row: usize = 0; row < rows; row++) {
    memory.copy(raw, qkv, size)
    for (let head: usize = 0; head < heads + keyHeads; head++) {
      const at = qkv + head * (headSize << 2)
      scaleRow(at, headWeight(layer, head), at, inverseRoot(at, headSize), headSize)
    }
    raw += size
    qkv += side << 2
  }
}

/** The gradient of queries and keys before their norms, in place. */
export function normHeadsBackward(layer: usize, rows: usize, dqkv: usize, raw: usize): void {
  for (let row: usize = 0; row < rows; row++) {
    for (let head: usize = 0; head < heads + keyHeads; head++) {
      normHeadBackward(raw, headWeight(layer, head), dqkv + head * (headSize << 2))
      raw += headSize << 2
    }
    dqkv += side << 2
  }
}

/** dy becomes r (w dy − x r² mean(w dy x)). */
function normHeadBackward(x: usize, weight: usize, dy: usize): void {
  const r = inverseRoot(x, headSize)
  let sum = f32x4.splat(0)
  for (let at: usize = 0; at < headSize << 2; at += 16) {
    const weighted = f32x4.mul(v128.load(dy + at), v128.load(weight + at))
    sum = madd(weighted, v128.load(x + at), sum)
  }
  const along = f32x4.splat(-(sumLanes(sum) * r * r * r) / <f32>headSize)
  const factor = f32x4.splat(r)
  for (let at: usize = 0; at < headSize << 2; at += 16) {
    const straight = f32x4.mul(f32x4.mul(v128.load(dy + at), v128.load(weight + at)), factor)
    v128.store(dy + at, madd(v128.load(x + at), along, straight))
  }
}

/** Adds a bias to every row. */
export function addBias(y: usize, bias: usize, rows: usize, columns: usize): void {
  for (let row: usize = 0; row < rows; row++) {
    for (let at: usize = 0; at < columns << 2; at += 16) {
      v128.store(y + at, f32x4.add(v128.load(y + at), v128.load(bias + at)))
    }
    y += columns << 2
  }
}

/** The slope of what a gate's sigmoid is taken of: gelu by tanh is x · sigmoid(x (a + b x²)). */
const GELU_A: f32 = 1.5957691216057308
const GELU_B: f32 = 0.0713548162726

/** What the sigmoid of a gate is taken of. */
// @ts-ignore: decorator
@inline
function bent(gate: v128, isGelu: bool): v128 {
  if (!isGelu) return gate
  const square = f32x4.mul(gate, gate)
  return f32x4.mul(gate, madd(square, f32x4.splat(GELU_B), f32x4.splat(GELU_A)))
}

/** silu(gate) · up of four numbers, or gelu(gate) · up. */
// @ts-ignore: decorator
@inline
function openGate(gateUp: usize, y: usize, isGelu: bool): void {
  const gate = v128.load(gateUp)
  const opened = f32x4.mul(gate, sigmoid4(bent(gate, isGelu)))
  v128.store(y, f32x4.mul(opened, v128.load(gateUp + (hidden << 2))))
}

/** The gated unit for rows that hold gate then up; four vectors share the exponential's constants. */
export function gatedUnit(gateUp: usize, y: usize, rows: usize): void {
  if (word(ACTIVATION) == 0) gatedRows(gateUp, y, rows, false)
  else gatedRows(gateUp, y, rows, true)
}

// @ts-ignore: decorator
@inline
function gatedRows(gateUp: usize, y: usize, rows: usize, isGelu: bool): void {
  const half = hidden << 2
  for (let row: usize = 0; row < rows; row++) {
    let at: usize = 0
    for (; at + 64 <= half; at += 64) {
      openGate(gateUp + at, y + at, isGelu)
      openGate(gateUp + at + 16, y + at + 16, isGelu)
      openGate(gateUp + at + 32, y + at + 32, isGelu)
      openGate(gateUp + at + 48, y + at + 48, isGelu)
    }
    for (; at < half; at += 16) openGate(gateUp + at, y + at, isGelu)
    gateUp += half << 1
    y += half
  }
}

/** Four numbers of `gatedUnitBackward`. */
// @ts-ignore: decorator
@inline
function openGateBackward(
  gateUp: usize, dy: usize, y: usize, dGateUp: usize, isGelu: bool,
): void {
  const half = hidden << 2
  const one = f32x4.splat(1)
  const gate = v128.load(gateUp)
  const up = v128.load(gateUp + half)
  const slope = v128.load(dy)
  const open = sigmoid4(bent(gate, isGelu))
  const opened = f32x4.mul(gate, open)
  let steepness = gate
  if (isGelu) {
    const square = f32x4.mul(gate, gate)
    steepness = f32x4.mul(gate, madd(square, f32x4.splat(3 * GELU_B), f32x4.splat(GELU_A)))
  }
  const bend = f32x4.mul(open, madd(steepness, f32x4.sub(one, open), one))
  v128.store(y, f32x4.mul(opened, up))
  v128.store(dGateUp, f32x4.mul(f32x4.mul(slope, up), bend))
  v128.store(dGateUp + half, f32x4.mul(slope, opened))
}

/** The gradient of gate and up from that of the gated unit, and the unit itself once more. */
export function gatedUnitBackward(
  gateUp: usize, dy: usize, y: usize, dGateUp: usize, rows: usize,
): void {
  if (word(ACTIVATION) == 0) gatedRowsBackward(gateUp, dy, y, dGateUp, rows, false)
  else gatedRowsBackward(gateUp, dy, y, dGateUp, rows, true)
}

// @ts-ignore: decorator
@inline
function gatedRowsBackward(
  gateUp: usize, dy: usize, y: usize, dGateUp: usize, rows: usize, isGelu: bool,
): void {
  const half = hidden << 2
  for (let row: usize = 0; row < rows; row++) {
    for (let at: usize = 0; at < half; at += 32) {
      openGateBackward(gateUp + at, dy + at, y + at, dGateUp + at, isGelu)
      openGateBackward(
        gateUp + at + 16, dy + at + 16, y + at + 16, dGateUp + at + 16, isGelu,
      )
    }
    gateUp += half << 1
    dGateUp += half << 1
    dy += half
    y += half
  }
}
