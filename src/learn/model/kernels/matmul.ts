// Matrix products. The right-hand matrix always comes in panels: eight columns wide, the eight
// numbers of a row side by side, rows in order. Panels are `bStride` bytes apart, rows of a panel
// `bStep`: 32 where a panel lies alone, more where panels lie side by side. Each element of a product is one chain of
// additions over the inner index, in order, in every tile shape: so a row's result has the same
// bits whatever is in the rows beside it.

import { madd } from './simd'

/** Four rows by one panel; rows of `a` are `aStride` bytes apart. */
function tile4(
  a: usize, aStride: usize, b: usize, bStep: usize, inner: usize, c: usize, cStride: usize,
  add: bool,
): void {
  const c1 = c + cStride
  const c2 = c1 + cStride
  const c3 = c2 + cStride
  let s00 = f32x4.splat(0)
  let s01 = s00, s10 = s00, s11 = s00, s20 = s00, s21 = s00, s30 = s00, s31 = s00
  if (add) {
    s00 = v128.load(c); s01 = v128.load(c, 16)
    s10 = v128.load(c1); s11 = v128.load(c1, 16)
    s20 = v128.load(c2); s21 = v128.load(c2, 16)
    s30 = v128.load(c3); s31 = v128.load(c3, 16)
  }
  let a1 = a + aStride
  let a2 = a1 + aStride
  let a3 = a2 + aStride
  const end = a + (inner << 2)
  while (a < end) {
    const b0 = v128.load(b)
    const b1 = v128.load(b, 16)
    let x = v128.load_splat<f32>(a)
    s00 = madd(x, b0, s00)
    s01 = madd(x, b1, s01)
    x = v128.load_splat<f32>(a1)
    s10 = madd(x, b0, s10)
    s11 = madd(x, b1, s11)
    x = v128.load_splat<f32>(a2)
    s20 = madd(x, b0, s20)
    s21 = madd(x, b1, s21)
    x = v128.load_splat<f32>(a3)
    s30 = madd(x, b0, s30)
    s31 = madd(x, b1, s31)
    a += 4
    a1 += 4
    a2 += 4
    a3 += 4
    b += bStep
  }
  v128.store(c, s00); v128.store(c, s01, 16)
  v128.store(c1, s10); v128.store(c1, s11, 16)
  v128.store(c2, s20); v128.store(c2, s21, 16)
  v128.store(c3, s30); v128.store(c3, s31, 16)
}

/** One row by one panel. */
function tile1(a: usize, b: usize, bStep: usize, inner: usize, c: usize, add: bool): void {
  let s0 = f32x4.splat(0)
  let s1 = s0
  if (add) {
    s0 = v128.load(c)
    s1 = v128.load(c, 16)
  }
  const end = a + (inner << 2)
  while (a < end) {
    const x = v128.load_splat<f32>(a)
    s0 = madd(x, v128.load(b), s0)
    s1 = madd(x, v128.load(b, 16), s1)
    a += 4
    b += bStep
  }
  v128.store(c, s0)
  v128.store(c, s1, 16)
}

/** One row by two panels: four independent sums, so that additions do not wait for each other. */
function tile1by2(
  a: usize, b: usize, bStride: usize, bStep: usize, inner: usize, c: usize, add: bool,
): void {
  let s0 = f32x4.splat(0)
  let s1 = s0, s2 = s0, s3 = s0
  if (add) {
    s0 = v128.load(c); s1 = v128.load(c, 16)
    s2 = v128.load(c, 32); s3 = v128.load(c, 48)
  }
  let b1 = b + bStride
  const end = a + (inner << 2)
  while (a < end) {
    const x = v128.load_splat<f32>(a)
    s0 = madd(x, v128.load(b), s0)
    s1 = madd(x, v128.load(b, 16), s1)
    s2 = madd(x, v128.load(b1), s2)
    s3 = madd(x, v128.load(b1, 16), s3)
    a += 4
    b += bStep
    b1 += bStep
  }
  v128.store(c, s0); v128.store(c, s1, 16)
  v128.store(c, s2, 32); v128.store(c, s3, 48)
}

/** One row by four panels, for the rows that do not fill a tile of four. */
function tile1by4(
  a: usize, b: usize, bStride: usize, bStep: usize, inner: usize, c: usize, add: bool,
): void {
  let s0 = f32x4.splat(0)
  let s1 = s0, s2 = s0, s3 = s0, s4 = s0, s5 = s0, s6 = s0, s7 = s0
  if (add) {
    s0 = v128.load(c); s1 = v128.load(c, 16)
    s2 = v128.load(c, 32); s3 = v128.load(c, 48)
    s4 = v128.load(c, 64); s5 = v128.load(c, 80)
    s6 = v128.load(c, 96); s7 = v128.load(c, 112)
  }
  let b1 = b + bStride
  let b2 = b1 + bStride
  let b3 = b2 + bStride
  const end = a + (inner << 2)
  while (a < end) {
    const x = v128.load_splat<f32>(a)
    s0 = madd(x, v128.load(b), s0)
    s1 = madd(x, v128.load(b, 16), s1)
    s2 = madd(x, v128.load(b1), s2)
    s3 = madd(x, v128.load(b1, 16), s3)
    s4 = madd(x, v128.load(b2), s4)
    s5 = madd(x, v128.load(b2, 16), s5)
    s6 = madd(x, v128.load(b3), s6)
    s7 = madd(x, v128.load(b3, 16), s7)
    a += 4
    b += bStep
    b1 += bStep
    b2 += bStep
    b3 += bStep
  }
  v128.store(c, s0); v128.store(c, s1, 16)
  v128.store(c, s2, 32); v128.store(c, s3, 48)
  v128.store(c, s4, 64); v128.store(c, s5, 80)
  v128.store(c, s6, 96); v128.store(c, s7, 112)
}

/** Four rows of aᵀ by one panel: the four numbers lie side by side, `aStride` bytes per step. */
function tile4turned(
  a: usize, aStride: usize, b: usize, inner: usize, c: usize, cStride: usize,
): void {
  const c1 = c + cStride
  const c2 = c1 + cStride
  const c3 = c2 + cStride
  let s00 = v128.load(c), s01 = v128.load(c, 16)
  let s10 = v128.load(c1), s11 = v128.load(c1, 16)
  let s20 = v128.load(c2), s21 = v128.load(c2, 16)
  let s30 = v128.load(c3), s31 = v128.load(c3, 16)
  const end = b + (inner << 5)
  while (b < end) {
    const b0 = v128.load(b)
    const b1 = v128.load(b, 16)
    let x = v128.load_splat<f32>(a)
    s00 = madd(x, b0, s00)
    s01 = madd(x, b1, s01)
    x = v128.load_splat<f32>(a, 4)
    s10 = madd(x, b0, s10)
    s11 = madd(x, b1, s11)
    x = v128.load_splat<f32>(a, 8)
    s20 = madd(x, b0, s20)
    s21 = madd(x, b1, s21)
    x = v128.load_splat<f32>(a, 12)
    s30 = madd(x, b0, s30)
    s31 = madd(x, b1, s31)
    a += aStride
    b += 32
  }
  v128.store(c, s00); v128.store(c, s01, 16)
  v128.store(c1, s10); v128.store(c1, s11, 16)
  v128.store(c2, s20); v128.store(c2, s21, 16)
  v128.store(c3, s30); v128.store(c3, s31, 16)
}

/** Up to three rows by all panels. */
function fewRows(
  a: usize, aStride: usize, b: usize, bStride: usize, bStep: usize, c: usize, cStride: usize,
  rows: usize, inner: usize, panels: usize, add: bool,
): void {
  for (let row: usize = 0; row < rows; row++) {
    let panel: usize = 0
    for (; panel + 4 <= panels; panel += 4) {
      tile1by4(a, b + panel * bStride, bStride, bStep, inner, c + (panel << 5), add)
    }
    if (panel + 2 <= panels) {
      tile1by2(a, b + panel * bStride, bStride, bStep, inner, c + (panel << 5), add)
      panel += 2
    }
    if (panel < panels) tile1(a, b + panel * bStride, bStep, inner, c + (panel << 5), add)
    a += aStride
    c += cStride
  }
}

/** c = a·b, or c += a·b when `add`: `rows` × `inner` by `inner` × 8 `panels`; strides in bytes. */
export function multiply(
  a: usize, aStride: usize, b: usize, bStride: usize, bStep: usize, c: usize, cStride: usize,
  rows: usize, inner: usize, panels: usize, add: bool,
): void {
  const whole = rows & ~3
  // Sixty-four rows at a time: they stay in the first-level cache while the panels go by.
  for (let first: usize = 0; first < whole; first += 64) {
    const last = min(first + 64, whole)
    for (let panel: usize = 0; panel < panels; panel++) {
      const from = b + panel * bStride
      const to = c + (panel << 5)
      for (let row = first; row < last; row += 4) {
        tile4(a + row * aStride, aStride, from, bStep, inner, to + row * cStride, cStride, add)
      }
    }
  }
  if (whole < rows) {
    fewRows(
      a + whole * aStride, aStride, b, bStride, bStep, c + whole * cStride, cStride,
      rows - whole, inner, panels, add,
    )
  }
}

/** c += aᵀ·b for `inner` rows of a and of b's panels; `rows` (columns of a) is a multiple of 4. */
export function multiplyTurned(
  a: usize, aStride: usize, b: usize, bStride: usize, c: usize, cStride: usize,
  rows: usize, inner: usize, panels: usize,
): void {
  for (let panel: usize = 0; panel < panels; panel++) {
    const from = b + panel * bStride
    const to = c + (panel << 5)
    for (let row: usize = 0; row < rows; row += 4) {
      tile4turned(a + (row << 2), aStride, from, inner, to + row * cStride, cStride)
    }
  }
}

/** Lays rows of `columns` floats out as panels of eight columns. */
export function packRows(
  from: usize, fromStride: usize, to: usize, toStride: usize, rows: usize, columns: usize,
): void {
  for (let row: usize = 0; row < rows; row++) {
    let target = to + (row << 5)
    for (let at: usize = 0; at < columns << 2; at += 32) {
      v128.store(target, v128.load(from + at))
      v128.store(target, v128.load(from + at, 16), 16)
      target += toStride
    }
    from += fromStride
  }
}

/** Transposes four by four floats; strides in bytes. */
// @ts-ignore: decorator
@inline
export function turnFour(from: usize, fromStride: usize, to: usize, toStride: usize): void {
  const a = v128.load(from)
  const b = v128.load(from + fromStride)
  const c = v128.load(from + 2 * fromStride)
  const d = v128.load(from + 3 * fromStride)
  const ab = v128.shuffle<f32>(a, b, 0, 4, 1, 5)
  const cd = v128.shuffle<f32>(c, d, 0, 4, 1, 5)
  const abHigh = v128.shuffle<f32>(a, b, 2, 6, 3, 7)
  const cdHigh = v128.shuffle<f32>(c, d, 2, 6, 3, 7)
  v128.store(to, v128.shuffle<f32>(ab, cd, 0, 1, 4, 5))
  v128.store(to + toStride, v128.shuffle<f32>(ab, cd, 2, 3, 6, 7))
  v128.store(to + 2 * toStride, v128.shuffle<f32>(abHigh, cdHigh, 0, 1, 4, 5))
  v128.store(to + 3 * toStride, v128.shuffle<f32>(abHigh, cdHigh, 2, 3, 6, 7))
}

/** Lays the transpose of `rows` × `columns` out as panels: panels of eight rows of the original. */
export function packTurned(
  from: usize, fromStride: usize, to: usize, rows: usize, columns: usize,
): void {
  packTurnedAt(from, fromStride, to, 0, rows, columns)
}

/** Lays rows out turned as `packTurned` does, as rows from `place` on. */
export function packTurnedAt(
  from: usize, fromStride: usize, to: usize, place: usize, rows: usize, columns: usize,
): void {
  const end = place + rows
  while (place < end) {
    const target = to + (place >> 3) * (columns << 5) + ((place & 7) << 2)
    if ((place & 3) == 0 && place + 4 <= end) {
      for (let at: usize = 0; at < columns << 2; at += 16) {
        turnFour(from + at, fromStride, target + (at << 3), 32)
      }
      from += fromStride << 2
      place += 4
      continue
    }
    for (let column: usize = 0; column < columns; column++) {
      store<f32>(target + (column << 5), load<f32>(from + (column << 2)))
    }
    from += fromStride
    place++
  }
}
