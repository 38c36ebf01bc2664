// Work on parameters: gathering lanes, the gradient's norm, AdamW, and panels after an update.

import {
  DOWN, DOWN_PANELS, DOWN_TURNED, EMBEDDING_PANELS, GATE_UP, GATE_UP_PANELS, GATE_UP_TURNED,
  GRADIENT, HEAD_PANELS, LANE_GRADIENTS, LAYER_FIXED, LAYER_FIXED_STRIDE, MOMENT_1, MOMENT_2,
  NORM_BLOCK, NORM_SUMS, OUT, OUT_PANELS, OUT_TURNED, PACK_LAYER, PARAMETER_BYTES, QKV, QKV_PANELS, QKV_TURNED, RANGE_BYTES, RANGE_LANES, RANGE_START,
  UPDATE_BETA_1, UPDATE_BETA_2, UPDATE_CORRECTION_1, UPDATE_CORRECTION_2, UPDATE_DECAY,
  UPDATE_EPSILON, UPDATE_RATE, UPDATE_SCALE,
} from './layout'
import { hidden, layers, paddedVocabulary, panels, panelsOf, trained, width, word } from './plan'
import { madd } from './simd'
import { packWeight, packWeightTurned } from './wide'

/** gradient += (lane 0 + lane 1 + …), over a range of parameters. */
export function reduce(job: usize): void {
  const start = <usize>load<u32>(job, RANGE_START)
  const end = start + <usize>load<u32>(job, RANGE_BYTES)
  const lanes = <usize>load<u32>(job, RANGE_LANES)
  const stride = word(PARAMETER_BYTES)
  for (let at = start; at < end; at += 16) {
    const target = word(GRADIENT) + at
    let from = word(LANE_GRADIENTS) + at
    let sum = v128.load(from)
    for (let lane: usize = 1; lane < lanes; lane++) {
      from += stride
      sum = f32x4.add(sum, v128.load(from))
    }
    v128.store(target, f32x4.add(v128.load(target), sum))
  }
}

/** Sums of squares of the gradient, one per block of parameters, in double precision. */
export function sumSquares(job: usize): void {
  const start = <usize>load<u32>(job, RANGE_START)
  const end = start + <usize>load<u32>(job, RANGE_BYTES)
  const block: usize = NORM_BLOCK << 2
  for (let first = start; first < end; first += block) {
    let low = f64x2.splat(0)
    let high = f64x2.splat(0)
    for (let at = first; at < min(first + block, end); at += 16) {
      const value = v128.load(word(GRADIENT) + at)
      const upper = f64x2.promote_low_f32x4(i32x4.shuffle(value, value, 2, 3, 2, 3))
      const lower = f64x2.promote_low_f32x4(value)
      low = f64x2.add(low, f64x2.mul(lower, lower))
      high = f64x2.add(high, f64x2.mul(upper, upper))
    }
    const sum = f64x2.add(low, high)
    store<f64>(
      word(NORM_SUMS) + first / block * 8, f64x2.extract_lane(sum, 0) + f64x2.extract_lane(sum, 1),
    )
  }
}

/** AdamW over a range: moments with bias correction, decay apart from the gradient, which is cleared. */
export function update(job: usize): void {
  const start = <usize>load<u32>(job, RANGE_START)
  const end = start + <usize>load<u32>(job, RANGE_BYTES)
  const beta1 = f32x4.splat(load<f32>(job, UPDATE_BETA_1))
  const beta2 = f32x4.splat(load<f32>(job, UPDATE_BETA_2))
  const fresh1 = f32x4.sub(f32x4.splat(1), beta1)
  const fresh2 = f32x4.sub(f32x4.splat(1), beta2)
  const correction1 = f32x4.splat(load<f32>(job, UPDATE_CORRECTION_1))
  const correction2 = f32x4.splat(load<f32>(job, UPDATE_CORRECTION_2))
  const epsilon = f32x4.splat(load<f32>(job, UPDATE_EPSILON))
  const scale = f32x4.splat(load<f32>(job, UPDATE_SCALE))
  const rate = f32x4.splat(-load<f32>(job, UPDATE_RATE))
  const decay = f32x4.splat(load<f32>(job, UPDATE_DECAY))
  for (let at = start; at < end; at += 16) {
    const source = word(GRADIENT) + at
    const gradient = f32x4.mul(v128.load(source), scale)
    v128.store(source, f32x4.splat(0))
    const moment1 = word(MOMENT_1) + at
    const moment2 = word(MOMENT_2) + at
    const m = madd(fresh1, gradient, f32x4.mul(beta1, v128.load(moment1)))
    const v = madd(fresh2, f32x4.mul(gradient, gradient), f32x4.mul(beta2, v128.load(moment2)))
    v128.store(moment1, m)
    v128.store(moment2, v)
    const spread = f32x4.add(f32x4.sqrt(f32x4.mul(v, correction2)), epsilon)
    const value = v128.load(trained() + at)
    const step = madd(decay, value, f32x4.div(f32x4.mul(m, correction1), spread))
    v128.store(trained() + at, madd(rate, step, value))
  }
}

/** Lays a weight of `rows` × `columns` out as panels, as it is and turned. */
function packBoth(weight: usize, rows: usize, columns: usize, straight: usize, turned: usize): void {
  packWeight(weight, straight, rows, columns)
  packWeightTurned(weight, turned, rows, columns)
}

/** Makes the panels of one layer, or of the embedding, from the parameters. */
export function pack(job: usize): void {
  const layer = <usize>load<u32>(job, PACK_LAYER)
  if (layer == layers) {
    packBoth(
      trained(), paddedVocabulary, width, panels + word(EMBEDDING_PANELS),
      panels + word(HEAD_PANELS),
    )
    return
  }
  const weight = trained() + word(LAYER_FIXED) + layer * word(LAYER_FIXED_STRIDE)
  const to = panelsOf(layer)
  packBoth(weight + word(QKV), width, width * 3, to + word(QKV_PANELS), to + word(QKV_TURNED))
  packBoth(weight + word(OUT), width, width, to + word(OUT_PANELS), to + word(OUT_TURNED))
  packBoth(
    weight + word(GATE_UP), width, hidden * 2, to + word(GATE_UP_PANELS),
    to + word(GATE_UP_TURNED),
  )
  packBoth(weight + word(DOWN), hidden, width, to + word(DOWN_PANELS), to + word(DOWN_TURNED))
}
