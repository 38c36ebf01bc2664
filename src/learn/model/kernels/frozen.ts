// Products with weights that stay: they lie in panels once, as floats or bf16, and are laid out as
// floats piece by piece, straight or turned, while many rows use each piece. Sums are made of shorter
// ones of `CHAIN` products: in so wide models one long chain would round away too much. An element's
// sum has the same order whatever is in the rows beside it.
// Halves of eight successive numbers of a panel lie in the order 0 4 1 5 2 6 3 7: a shift gives the
// first four of them as floats, a mask the others.

import { multiply, turnFour } from './matmul'
import { hasHalves, isFrozen } from './plan'
import { madd } from './simd'
import { project, tile3Late, wideColumns } from './wide'

/** Inner numbers of a piece: with twelve columns it stays in the first-level cache. */
const PIECE: usize = 480

/** Products of a chain; a piece is made of whole ones. */
const CHAIN: usize = 96

/** Floats of scratch: a piece, and what is turned at a time. */
export function frozenScratch(): usize {
  return isFrozen ? PIECE * 12 + 144 : 0
}

/** Bytes of so many numbers in panels. */
// @ts-ignore: decorator
@inline
export function panelBytes(count: usize): usize {
  return hasHalves ? count << 1 : count << 2
}

/** Eight halves as floats. */
// @ts-ignore: decorator
@inline
function unpackEight(from: usize, to: usize): void {
  const pairs = v128.load(from)
  v128.store(to, i32x4.shl(pairs, 16))
  v128.store(to, v128.and(pairs, i32x4.splat(0xffff0000)), 16)
}

/** Successive halves as floats; `count` is a multiple of 8. */
function unpack(from: usize, to: usize, count: usize): void {
  const stop = from + (count << 1)
  while (from < stop) {
    unpackEight(from, to)
    from += 16
    to += 32
  }
}

/** The number at `index` of a panel. */
// @ts-ignore: decorator
@inline
export function numberOf(panel: usize, index: usize): f32 {
  if (!hasHalves) return load<f32>(panel + (index << 2))
  const within = index & 7
  const place = (within < 4 ? within << 1 : (within << 1) - 7) + (index & ~7)
  return reinterpret<f32>(<u32>load<u16>(panel + (place << 1)) << 16)
}

/** One row by one panel of twelve columns. */
function tile1(a: usize, b: usize, inner: usize, c: usize, add: bool): void {
  let s0 = f32x4.splat(0)
  let s1 = s0, s2 = s0
  const stop = a + (inner << 2)
  while (a < stop) {
    const x = v128.load_splat<f32>(a)
    s0 = madd(x, v128.load(b), s0)
    s1 = madd(x, v128.load(b, 16), s1)
    s2 = madd(x, v128.load(b, 32), s2)
    a += 4
    b += 48
  }
  keep(c, s0, add); keep(c + 16, s1, add); keep(c + 32, s2, add)
}

/** Stores a sum, or adds it to what is there. */
// @ts-ignore: decorator
@inline
function keep(at: usize, sum: v128, add: bool): void {
  v128.store(at, add ? f32x4.add(v128.load(at), sum) : sum)
}

/** One row by a pair of panels of halves: what sampling one sequence takes its time for. */
function tile1pair(a: usize, b: usize, d: usize, inner: usize, c: usize, add: bool): void {
  const mask = i32x4.splat(0xffff0000)
  let s0 = f32x4.splat(0)
  let s1 = s0, s2 = s0, s3 = s0, s4 = s0, s5 = s0
  const stop = a + (inner << 2)
  while (a < stop) {
    let x = v128.load_splat<f32>(a)
    let p = v128.load(b)
    let q = v128.load(b, 16)
    s0 = madd(x, i32x4.shl(p, 16), s0)
    s1 = madd(x, v128.and(p, mask), s1)
    s2 = madd(x, i32x4.shl(q, 16), s2)
    let r = v128.load(d)
    let t = v128.load(d, 16)
    s3 = madd(x, i32x4.shl(r, 16), s3)
    s4 = madd(x, v128.and(r, mask), s4)
    s5 = madd(x, i32x4.shl(t, 16), s5)
    x = v128.load_splat<f32>(a, 4)
    p = v128.load(b, 32)
    s0 = madd(x, v128.and(q, mask), s0)
    s1 = madd(x, i32x4.shl(p, 16), s1)
    s2 = madd(x, v128.and(p, mask), s2)
    r = v128.load(d, 32)
    s3 = madd(x, v128.and(t, mask), s3)
    s4 = madd(x, i32x4.shl(r, 16), s4)
    s5 = madd(x, v128.and(r, mask), s5)
    a += 8
    b += 48
    d += 48
  }
  keep(c, s0, add); keep(c + 16, s1, add); keep(c + 32, s2, add)
  keep(c + 48, s3, add); keep(c + 64, s4, add); keep(c + 80, s5, add)
}

/** Rows by a piece of twelve columns, or of eight. */
function multiplyPiece(
  a: usize, aStride: usize, b: usize, c: usize, cStride: usize, rows: usize, inner: usize,
  columns: usize, add: bool,
): void {
  if (columns == 8) return multiply(a, aStride, b, 0, 32, c, cStride, rows, inner, 1, add)
  const whole = rows - rows % 3
  for (let row: usize = 0; row < rows; ) {
    const count: usize = row < whole ? 3 : 1
    const from = a + row * aStride
    const to = c + row * cStride
    for (let first: usize = 0; first < inner; first += CHAIN) {
      const length = min(CHAIN, inner - first)
      const panel = b + first * 48
      const adds = add || first > 0
      if (count == 3) tile3Late(from + (first << 2), aStride, panel, length, to, cStride, adds)
      else tile1(from + (first << 2), panel, length, to, adds)
    }
    row += count
  }
}

/** x · weights, or y += x · weights when `add`; weights are `inner` × `columns` in panels. */
export function projectFrozen(
  x: usize, weights: usize, y: usize, rows: usize, inner: usize, columns: usize, add: bool,
  piece: usize,
): void {
  if (!hasHalves) return project(x, weights, y, rows, inner, columns, add)
  const wide = wideColumns(columns)
  let column: usize = 0
  if (rows == 1) {
    for (; column < wide; column += 24) {
      const panel = weights + (inner * column << 1)
      for (let first: usize = 0; first < inner; first += CHAIN) {
        const from = panel + first * 24
        tile1pair(
          x + (first << 2), from, from + inner * 24, min(CHAIN, inner - first), y + (column << 2),
          add || first > 0,
        )
      }
    }
  }
  while (column < columns) {
    const across: usize = column < wide ? 12 : 8
    const panel = weights + (inner * column << 1)
    for (let first: usize = 0; first < inner; first += PIECE) {
      const count = min(PIECE, inner - first)
      unpack(panel + (first * across << 1), piece, count * across)
      multiplyPiece(
        x + (first << 2), inner << 2, piece, y + (column << 2), columns << 2, rows, count, across,
        add || first > 0,
      )
    }
    column += across
  }
}

/**
 * x · weightsᵀ, or y += x · weightsᵀ when `add`; weights are `columns` × `inner` in panels, of which
 * `across` rows by one panel at a time are turned.
 */
export function projectTurned(
  x: usize, weights: usize, y: usize, rows: usize, inner: usize, columns: usize, add: bool,
  piece: usize,
): void {
  const wide = wideColumns(columns)
  let column: usize = 0
  while (column < columns) {
    const across: usize = column < wide ? 12 : 8
    for (let first: usize = 0; first < inner; ) {
      const count = turnPiece(weights, piece, first, inner, column, columns, across)
      multiplyPiece(
        x + (first << 2), inner << 2, piece, y + (column << 2), columns << 2, rows, count, across,
        add || first > 0,
      )
      first += count
    }
    column += across
  }
}

/** Lays `across` rows of weights from `column` on out turned, from their number `first` on; gives how many numbers. */
function turnPiece(
  weights: usize, piece: usize, first: usize, inner: usize, column: usize, columns: usize,
  across: usize,
): usize {
  const wide = wideColumns(inner)
  let done: usize = 0
  while (done + 12 <= PIECE && first + done < inner) {
    const length: usize = first + done < wide ? 12 : 8
    let block = weights + panelBytes(columns * (first + done) + column * length)
    if (hasHalves) {
      unpack(block, piece + PIECE * 48, across * length)
      block = piece + PIECE * 48
    }
    const to = piece + done * (across << 2)
    for (let row: usize = 0; row < across; row += 4) {
      for (let at: usize = 0; at < length; at += 4) {
        turnFour(
          block + (row * length + at << 2), length << 2, to + (at * across + row << 2), across << 2,
        )
      }
    }
    done += length
  }
  return done
}
