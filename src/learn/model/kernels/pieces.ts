// The parts of a layer that are not matrix products: norms, rotary positions, the gated unit.

import { cosines, headSize, heads, hidden, sines, width } from './plan'
import { madd, sigmoid4, sumLanes } from './simd'

const EPSILON: f32 = 1e-6

/** 1 / √(mean x² + ε) of one row. */
// @ts-ignore: decorator
@inline
function inverseRoot(x: usize): f32 {
  let sum = f32x4.splat(0)
  for (let at: usize = 0; at < width << 2; at += 16) {
    const value = v128.load(x + at)
    sum = madd(value, value, sum)
  }
  return <f32>1 / sqrt<f32>(sumLanes(sum) / <f32>width + EPSILON)
}

/** y = x r w for one row with its r known. */
// @ts-ignore: decorator
@inline
function scaleRow(x: usize, weight: usize, y: usize, r: f32): void {
  const factor = f32x4.splat(r)
  for (let at: usize = 0; at < width << 2; at += 16) {
    v128.store(y + at, f32x4.mul(f32x4.mul(v128.load(x + at), factor), v128.load(weight + at)))
  }
}

/** Root-mean-square norm of `rows` rows; the inverse roots are kept, one float each. */
export function norm(x: usize, weight: usize, y: usize, roots: usize, rows: usize): void {
  for (let row: usize = 0; row < rows; row++) {
    const r = inverseRoot(x)
    store<f32>(roots, r)
    scaleRow(x, weight, y, r)
    x += width << 2
    y += width << 2
    roots += 4
  }
}

/** The norm again, from kept inverse roots. */
export function normAgain(x: usize, weight: usize, y: usize, roots: usize, rows: usize): void {
  for (let row: usize = 0; row < rows; row++) {
    scaleRow(x, weight, y, load<f32>(roots))
    x += width << 2
    y += width << 2
    roots += 4
  }
}

/** dx += r (w dy − x r² mean(w dy x)) and dw += dy x r, for one row. */
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
    const scaled = f32x4.mul(slope, factor)
    v128.store(dweight + at, madd(scaled, value, v128.load(dweight + at)))
  }
}

/**
 * Turns the pairs (i, i + half) of every head of one row by the angles of its position;
 * `sign` −1 turns back, which is also the gradient's way.
 */
export function rotate(row: usize, position: usize, sign: f32): void {
  const half = headSize << 1
  const cosine = cosines + position * half
  const sine = sines + position * half
  const direction = f32x4.splat(sign)
  for (let head: usize = 0; head < heads; head++) {
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

/** silu(gate) · up of four numbers. */
// @ts-ignore: decorator
@inline
function openGate(gateUp: usize, y: usize): void {
  const gate = v128.load(gateUp)
  const opened = f32x4.mul(gate, sigmoid4(gate))
  v128.store(y, f32x4.mul(opened, v128.load(gateUp + (hidden << 2))))
}

/** silu(gate) · up for rows that hold gate then up; four vectors share the exponential's constants. */
export function gatedUnit(gateUp: usize, y: usize, rows: usize): void {
  const half = hidden << 2
  for (let row: usize = 0; row < rows; row++) {
    let at: usize = 0
    for (; at + 64 <= half; at += 64) {
      openGate(gateUp + at, y + at)
      openGate(gateUp + at + 16, y + at + 16)
      openGate(gateUp + at + 32, y + at + 32)
      openGate(gateUp + at + 48, y + at + 48)
    }
    for (; at < half; at += 16) openGate(gateUp + at, y + at)
    gateUp += half << 1
    y += half
  }
}

/** Four numbers of `gatedUnitBackward`. */
// @ts-ignore: decorator
@inline
function openGateBackward(gateUp: usize, dy: usize, y: usize, dGateUp: usize): void {
  const half = hidden << 2
  const one = f32x4.splat(1)
  const gate = v128.load(gateUp)
  const up = v128.load(gateUp + half)
  const slope = v128.load(dy)
  const open = sigmoid4(gate)
  const opened = f32x4.mul(gate, open)
  const bend = f32x4.mul(open, madd(gate, f32x4.sub(one, open), one))
  v128.store(y, f32x4.mul(opened, up))
  v128.store(dGateUp, f32x4.mul(f32x4.mul(slope, up), bend))
  v128.store(dGateUp + half, f32x4.mul(slope, opened))
}

/** The gradient of gate and up from that of the gated unit, and the unit itself once more. */
export function gatedUnitBackward(
  gateUp: usize, dy: usize, y: usize, dGateUp: usize, rows: usize,
): void {
  const half = hidden << 2
  for (let row: usize = 0; row < rows; row++) {
    for (let at: usize = 0; at < half; at += 32) {
      openGateBackward(gateUp + at, dy + at, y + at, dGateUp + at)
      openGateBackward(gateUp + at + 16, dy + at + 16, y + at + 16, dGateUp + at + 16)
    }
    gateUp += half << 1
    dGateUp += half << 1
    dy += half
    y += half
  }
}
