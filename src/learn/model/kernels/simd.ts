// Small vector pieces. Exponential and logarithm are our own polynomials: only additions,
// multiplications and divisions, so that every engine and processor gives the same bits.

/** a·b + c: fused if the relaxed instructions are compiled in, two roundings otherwise. */
// @ts-ignore: decorator
@inline
export function madd(a: v128, b: v128, c: v128): v128 {
  if (ASC_FEATURE_RELAXED_SIMD) return v128.relaxed_madd<f32>(a, b, c)
  return f32x4.add(c, f32x4.mul(a, b))
}

/** The four lanes added in one fixed order. */
// @ts-ignore: decorator
@inline
export function sumLanes(x: v128): f32 {
  return (
    f32x4.extract_lane(x, 0) + f32x4.extract_lane(x, 1) +
    (f32x4.extract_lane(x, 2) + f32x4.extract_lane(x, 3))
  )
}

// @ts-ignore: decorator
@inline
export function maxLanes(x: v128): f32 {
  return max(
    max(f32x4.extract_lane(x, 0), f32x4.extract_lane(x, 1)),
    max(f32x4.extract_lane(x, 2), f32x4.extract_lane(x, 3)),
  )
}

/** e^x of numbers from -87 to 88, to about one unit in the last place. */
// @ts-ignore: decorator
@inline
function expWithin(x: v128): v128 {
  // Adding 1.5 · 2²³ rounds to a whole number and leaves it in the lowest bits.
  const rounded = f32x4.add(f32x4.mul(x, f32x4.splat(1.4426950408889634)), f32x4.splat(12582912))
  const n = f32x4.sub(rounded, f32x4.splat(12582912))
  // ln 2 in two pieces; the first has so few bits that its product with n is exact.
  let r = madd(n, f32x4.splat(-0.693359375), x)
  r = madd(n, f32x4.splat(0.00021219444005469057), r)
  let y = f32x4.splat(<f32>(1.0 / 5040.0))
  y = madd(y, r, f32x4.splat(<f32>(1.0 / 720.0)))
  y = madd(y, r, f32x4.splat(<f32>(1.0 / 120.0)))
  y = madd(y, r, f32x4.splat(<f32>(1.0 / 24.0)))
  y = madd(y, r, f32x4.splat(<f32>(1.0 / 6.0)))
  y = madd(y, r, f32x4.splat(0.5))
  y = madd(y, r, f32x4.splat(1))
  y = madd(y, r, f32x4.splat(1))
  return f32x4.mul(y, i32x4.shl(i32x4.add(rounded, i32x4.splat(127)), 23))
}

/** e^x of a number that is not above 0, as behind a maximum; 0 below -87, where floats would be subnormal. */
// @ts-ignore: decorator
@inline
export function exp4(x: v128): v128 {
  const least = f32x4.splat(-87)
  // pmax and pmin are one instruction each; max and min, which also order zeros and NaN, are many.
  return v128.and(expWithin(f32x4.pmax(x, least)), f32x4.ge(x, least))
}

/** 1 / (1 + e^−x). */
// @ts-ignore: decorator
@inline
export function sigmoid4(x: v128): v128 {
  const one = f32x4.splat(1)
  const within = f32x4.pmin(f32x4.pmax(f32x4.neg(x), f32x4.splat(-87)), f32x4.splat(88))
  return f32x4.div(one, f32x4.add(one, expWithin(within)))
}

/** The natural logarithm of a positive, normal number: 2 artanh((m − 1) / (m + 1)) + e ln 2. */
export function logarithm(x: f64): f64 {
  const bits = reinterpret<u64>(x)
  let exponent = <i32>(bits >> 52) - 1023
  let mantissa = reinterpret<f64>((bits & 0x000fffffffffffff) | 0x3ff0000000000000)
  if (mantissa > 1.4142135623730951) {
    mantissa *= 0.5
    exponent += 1
  }
  const s = (mantissa - 1) / (mantissa + 1)
  const square = s * s
  let series: f64 = 1.0 / 19.0
  for (let odd = 17; odd > 0; odd -= 2) series = series * square + 1.0 / <f64>odd
  return 2 * s * series + <f64>exponent * 0.6931471805599453
}
