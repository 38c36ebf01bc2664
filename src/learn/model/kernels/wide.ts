// Products of activations with weights. Weights lie in panels of twelve columns, as many pairs of
// them as there are, and the rest in panels of eight: three rows by twelve columns are the most sums
// that stay in registers beside what they are made of, and nine sums are enough that additions do
// not wait for each other. Sums have the same order as in `multiply`.
// Without fused multiplication the products want registers too: then all panels have eight columns.

import { multiply, packRows, turnFour } from './matmul'
import { madd } from './simd'

/** Bytes of a panel's row. */
const ROW: usize = 48

/** Rows at a time: they stay in the first-level cache while the panels go by. */
const STRIP: usize = 66

/** Columns that lie in panels of twelve. */
// @ts-ignore: decorator
@inline
export function wideColumns(columns: usize): usize {
  return ASC_FEATURE_RELAXED_SIMD ? columns - columns % 24 : 0
}

/** Three rows by one panel. */
function tile3(
  a: usize, aStride: usize, b: usize, inner: usize, c: usize, cStride: usize, add: bool,
): void {
  tileThree(a, aStride, b, inner, c, cStride, add, false)
}

/** Three rows by one panel, added to what is there only at the end. */
export function tile3Late(
  a: usize, aStride: usize, b: usize, inner: usize, c: usize, cStride: usize, add: bool,
): void {
  tileThree(a, aStride, b, inner, c, cStride, false, add)
}

// @ts-ignore: decorator
@inline
function tileThree(
  a: usize, aStride: usize, b: usize, inner: usize, c: usize, cStride: usize, add: bool, late: bool,
): void {
  const c1 = c + cStride
  const c2 = c1 + cStride
  let s00 = f32x4.splat(0)
  let s01 = s00, s02 = s00, s10 = s00, s11 = s00, s12 = s00, s20 = s00, s21 = s00, s22 = s00
  if (add) {
    s00 = v128.load(c); s01 = v128.load(c, 16); s02 = v128.load(c, 32)
    s10 = v128.load(c1); s11 = v128.load(c1, 16); s12 = v128.load(c1, 32)
    s20 = v128.load(c2); s21 = v128.load(c2, 16); s22 = v128.load(c2, 32)
  }
  let a1 = a + aStride
  let a2 = a1 + aStride
  const end = a + (inner << 2)
  while (a < end) {
    const b0 = v128.load(b)
    const b1 = v128.load(b, 16)
    const b2 = v128.load(b, 32)
    let x = v128.load_splat<f32>(a)
    s00 = madd(x, b0, s00)
    s01 = madd(x, b1, s01)
    s02 = madd(x, b2, s02)
    x = v128.load_splat<f32>(a1)
    s10 = madd(x, b0, s10)
    s11 = madd(x, b1, s11)
    s12 = madd(x, b2, s12)
    x = v128.load_splat<f32>(a2)
    s20 = madd(x, b0, s20)
    s21 = madd(x, b1, s21)
    s22 = madd(x, b2, s22)
    a += 4
    a1 += 4
    a2 += 4
    b += ROW
  }
  if (late) {
    s00 = f32x4.add(v128.load(c), s00)
    s01 = f32x4.add(v128.load(c, 16), s01)
    s02 = f32x4.add(v128.load(c, 32), s02)
    s10 = f32x4.add(v128.load(c1), s10)
    s11 = f32x4.add(v128.load(c1, 16), s11)
    s12 = f32x4.add(v128.load(c1, 32), s12)
    s20 = f32x4.add(v128.load(c2), s20)
    s21 = f32x4.add(v128.load(c2, 16), s21)
    s22 = f32x4.add(v128.load(c2, 32), s22)
  }
  v128.store(c, s00); v128.store(c, s01, 16); v128.store(c, s02, 32)
  v128.store(c1, s10); v128.store(c1, s11, 16); v128.store(c1, s12, 32)
  v128.store(c2, s20); v128.store(c2, s21, 16); v128.store(c2, s22, 32)
}

/** One row by a pair of panels. */
function tile1(a: usize, b: usize, inner: usize, c: usize, add: bool): void {
  let s0 = f32x4.splat(0)
  let s1 = s0, s2 = s0, s3 = s0, s4 = s0, s5 = s0
  if (add) {
    s0 = v128.load(c); s1 = v128.load(c, 16); s2 = v128.load(c, 32)
    s3 = v128.load(c, 48); s4 = v128.load(c, 64); s5 = v128.load(c, 80)
  }
  let d = b + inner * ROW
  const end = a + (inner << 2)
  while (a < end) {
    const x = v128.load_splat<f32>(a)
    s0 = madd(x, v128.load(b), s0)
    s1 = madd(x, v128.load(b, 16), s1)
    s2 = madd(x, v128.load(b, 32), s2)
    s3 = madd(x, v128.load(d), s3)
    s4 = madd(x, v128.load(d, 16), s4)
    s5 = madd(x, v128.load(d, 32), s5)
    a += 4
    b += ROW
    d += ROW
  }
  v128.store(c, s0); v128.store(c, s1, 16); v128.store(c, s2, 32)
  v128.store(c, s3, 48); v128.store(c, s4, 64); v128.store(c, s5, 80)
}

/** Rows, a multiple of three, by one panel. */
function multiplyThrees(
  a: usize, aStride: usize, b: usize, c: usize, cStride: usize, rows: usize, inner: usize,
  add: bool,
): void {
  for (let row: usize = 0; row < rows; row += 3) {
    tile3(a + row * aStride, aStride, b, inner, c + row * cStride, cStride, add)
  }
}

/** Up to `STRIP` rows by a pair of panels. */
function multiplyPair(
  a: usize, aStride: usize, b: usize, c: usize, cStride: usize, rows: usize, inner: usize,
  add: bool,
): void {
  const size = inner * ROW
  const rest = rows % 3
  multiplyThrees(a, aStride, b, c, cStride, rows - rest, inner, add)
  multiplyThrees(a, aStride, b + size, c + ROW, cStride, rows - rest, inner, add)
  for (let row = rows - rest; row < rows; row++) {
    tile1(a + row * aStride, b, inner, c + row * cStride, add)
  }
}

/** c = a·b, or c += a·b when `add`, for b in panels; `columns` is a multiple of 8. */
function multiplyPanels(
  a: usize, aStride: usize, b: usize, c: usize, rows: usize, inner: usize, columns: usize,
  add: bool,
): void {
  const wide = wideColumns(columns)
  const cStride = columns << 2
  for (let first: usize = 0; first < rows; first += STRIP) {
    const from = a + first * aStride
    const to = c + first * cStride
    const count = min(STRIP, rows - first)
    for (let column: usize = 0; column < wide; column += 24) {
      multiplyPair(
        from, aStride, b + (inner * column << 2), to + (column << 2), cStride, count, inner, add,
      )
    }
  }
  multiply(
    a, aStride, b + (inner * wide << 2), inner << 5, 32, c + (wide << 2), cStride, rows, inner,
    (columns - wide) >> 3, add,
  )
}

/** x · weights for whole activations, or y += x · weights when `add`. */
export function project(
  x: usize, weights: usize, y: usize, rows: usize, inner: usize, columns: usize, add: bool,
): void {
  multiplyPanels(x, inner << 2, weights, y, rows, inner, columns, add)
}

/** Tokens whose products are summed at a time by `addGradient`. */
const TOKENS: usize = 256

/** Floats between rows of tokens: not a power of two, or they would compete for the same cache sets. */
const TOKEN_STRIDE: usize = TOKENS + 4

/** Floats of scratch that `addGradient` wants. */
export function gradientScratch(rows: usize, columns: usize): usize {
  return TOKEN_STRIDE * rows + TOKENS * columns
}

/**
 * A weight's gradient over tokens, c = aᵀ·b, or c += aᵀ·b when `add`: a is tokens × rows, b is
 * tokens × columns.
 */
export function addGradient(
  a: usize, b: usize, c: usize, tokens: usize, rows: usize, columns: usize, scratch: usize,
  add: bool,
): void {
  const packed = scratch + (TOKEN_STRIDE * rows << 2)
  for (let first: usize = 0; first < tokens; first += TOKENS) {
    const count = min(TOKENS, tokens - first)
    turn(a + (first * rows << 2), scratch, count, rows)
    packWeight(b + (first * columns << 2), packed, count, columns)
    multiplyPanels(scratch, TOKEN_STRIDE << 2, packed, c, rows, count, columns, add || first > 0)
  }
}

/** Transposes `rows` × `columns`, four by four; rows of the result are `TOKEN_STRIDE` apart. */
function turn(from: usize, to: usize, rows: usize, columns: usize): void {
  const side = columns << 2
  const whole = rows & ~3
  for (let row: usize = 0; row < whole; row += 4) {
    for (let at: usize = 0; at < side; at += 16) {
      turnFour(
        from + row * side + at, side, to + at * TOKEN_STRIDE + (row << 2), TOKEN_STRIDE << 2,
      )
    }
  }
  for (let row = whole; row < rows; row++) {
    for (let at: usize = 0; at < side; at += 4) {
      store<f32>(to + at * TOKEN_STRIDE + (row << 2), load<f32>(from + row * side + at))
    }
  }
}

/** Lays a weight of `rows` × `columns` out in panels. */
export function packWeight(from: usize, to: usize, rows: usize, columns: usize): void {
  const wide = wideColumns(columns)
  for (let row: usize = 0; row < rows; row++) {
    const start = from + row * (columns << 2)
    for (let panel: usize = 0; panel < wide / 12; panel++) {
      const source = start + panel * ROW
      const target = to + (panel * rows + row) * ROW
      v128.store(target, v128.load(source))
      v128.store(target, v128.load(source, 16), 16)
      v128.store(target, v128.load(source, 32), 32)
    }
  }
  packRows(
    from + (wide << 2), columns << 2, to + (rows * wide << 2), rows << 5, rows, columns - wide,
  )
}

/** Lays the transpose of a weight of `rows` × `columns` out in panels. */
export function packWeightTurned(from: usize, to: usize, rows: usize, columns: usize): void {
  const wide = wideColumns(rows)
  for (let row: usize = 0; row < rows; row++) {
    const isWide = row < wide
    const across = isWide ? ROW : 32
    const within = isWide ? row % 12 : (row - wide) % 8
    let target = to + ((row - within) * columns + within << 2)
    for (let column: usize = 0; column < columns; column++) {
      store<f32>(target, load<f32>(from + (column << 2)))
      target += across
    }
    from += columns << 2
  }
}
