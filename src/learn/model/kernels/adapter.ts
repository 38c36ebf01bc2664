// The low-rank change of a frozen map, y += scale · (x A) B, and the gradients of its factors: A is
// inputs × rank, B is rank × outputs, both row-major floats.

import { ADAPTER_SCALE, ADAPTER_STRIDE, FACTORS, RANK } from './layout'
import { multiply, multiplyTurned, packRows, packTurned } from './matmul'
import { float, hidden, keyWidth, queryWidth, trained, width, word } from './plan'

/** The maps of a layer, in the order of their factors. */
export const QUERY: usize = 0
export const KEY: usize = 1
export const VALUE: usize = 2
export const ATTENDED: usize = 3
export const GATE: usize = 4
export const UP: usize = 5
export const DOWN_MAP: usize = 6

/** Floats of scratch that the functions below want for so many tokens. */
export function adapterScratch(tokens: usize, backward: bool): usize {
  const rank = word(RANK)
  if (rank == 0) return 0
  const widest = max(max(width, hidden), max(queryWidth, keyWidth))
  return backward ? tokens * (3 * rank + widest) + 2 * widest * rank : tokens * rank
}

/** Where the factors of a map lie among a layer's; 0 if it has none. */
// @ts-ignore: decorator
@inline
function factorOf(map: usize, second: usize): usize {
  return word(FACTORS + (map << 3) + (second << 2))
}

/** rows · scale, in place. */
function scaleAll(at: usize, count: usize): void {
  const scale = f32x4.splat(float(ADAPTER_SCALE))
  const stop = at + (count << 2)
  for (; at < stop; at += 16) v128.store(at, f32x4.mul(v128.load(at), scale))
}

/** scale · x A. */
function reduceRank(layer: usize, map: usize, x: usize, inner: usize, rows: usize, to: usize): void {
  const rank = word(RANK)
  const down = trained() + layer * word(ADAPTER_STRIDE) + factorOf(map, 0)
  multiply(x, inner << 2, down, 32, rank << 2, to, rank << 2, rows, inner, rank >> 3, false)
  scaleAll(to, rows * rank)
}

/** y += scale · (x A) B for a map whose results are `yStride` bytes apart. */
export function addAdapter(
  layer: usize, map: usize, x: usize, inner: usize, y: usize, yStride: usize, rows: usize,
  outputs: usize, scratch: usize,
): void {
  const rank = word(RANK)
  if (rank == 0 || factorOf(map, 0) == 0) return
  reduceRank(layer, map, x, inner, rows, scratch)
  const up = trained() + layer * word(ADAPTER_STRIDE) + factorOf(map, 1)
  multiply(
    scratch, rank << 2, up, 32, outputs << 2, y, yStride, rows, rank, outputs >> 3, true,
  )
}

/** Adds the factors' gradients to those of a lane, and what goes through them to dx. */
export function adapterBackward(
  layer: usize, map: usize, x: usize, inner: usize, dy: usize, dyStride: usize, rows: usize,
  outputs: usize, dx: usize, lane: usize, scratch: usize,
): void {
  const rank = word(RANK)
  if (rank == 0 || factorOf(map, 0) == 0) return
  const low = scratch
  const dLow = low + (rows * rank << 2)
  const panels = dLow + (rows * rank << 2)
  const turned = panels + (rows * max(outputs, rank) << 2)
  const at = layer * word(ADAPTER_STRIDE)
  const down = at + factorOf(map, 0)
  const up = at + factorOf(map, 1)
  reduceRank(layer, map, x, inner, rows, low)
  packTurned(trained() + up, outputs << 2, turned, rank, outputs)
  multiply(
    dy, dyStride, turned, outputs << 5, 32, dLow, rank << 2, rows, outputs, rank >> 3, false,
  )
  scaleAll(dLow, rows * rank)
  packRows(dy, dyStride, panels, rows << 5, rows, outputs)
  multiplyTurned(
    low, rank << 2, panels, rows << 5, lane + up, outputs << 2, rank, rows, outputs >> 3,
  )
  packRows(dLow, rank << 2, panels, rows << 5, rows, rank)
  multiplyTurned(
    x, inner << 2, panels, rows << 5, lane + down, rank << 2, inner, rows, rank >> 3,
  )
  packTurned(trained() + down, rank << 2, turned, inner, rank)
  multiply(dLow, rank << 2, turned, rank << 5, 32, dx, inner << 2, rows, rank, inner >> 3, true)
}
