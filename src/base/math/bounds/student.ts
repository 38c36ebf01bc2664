/** P(T ≤ t) of Student's distribution with `freedom` degrees, by the regularised incomplete beta function. */
export function studentBelow(t: number, freedom: number): number {
  if (t === 0) return 0.5
  const tail = betaBelow(freedom / (freedom + t * t), freedom / 2, 0.5) / 2
  return t > 0 ? 1 - tail : tail
}

/** The t with P(T ≤ t) = probability, by halving; 1e300 and its negative bound it. */
export function studentQuantile(probability: number, freedom: number): number {
  if (!(probability > 0 && probability < 1))
    throw new RangeError(`A quantile needs a probability between 0 and 1, got ${probability}.`)
  if (probability < 0.5) return -studentQuantile(1 - probability, freedom)
  let low = 0
  let high = 1
  while (studentBelow(high, freedom) < probability && high < 1e300) high *= 2
  for (let step = 0; step < 200 && high - low > 1e-12 * high; step++) {
    const middle = (low + high) / 2
    if (studentBelow(middle, freedom) < probability) low = middle
    else high = middle
  }
  return (low + high) / 2
}

/** The regularised incomplete beta function I_x(a, b), by its continued fraction (Lentz 1976). */
function betaBelow(x: number, a: number, b: number): number {
  if (x <= 0) return 0
  if (x >= 1) return 1
  if (x > (a + 1) / (a + b + 2)) return 1 - betaBelow(1 - x, b, a)
  const front = Math.exp(
    logGamma(a + b) - logGamma(a) - logGamma(b) + a * Math.log(x) + b * Math.log1p(-x),
  )
  return (front * betaFraction(x, a, b)) / a
}

function betaFraction(x: number, a: number, b: number): number {
  const least = 1e-300
  const away = (value: number): number => (Math.abs(value) < least ? least : value)
  let c = 1
  let d = 1 / away(1 - ((a + b) * x) / (a + 1))
  let sum = d
  for (let m = 1; m <= 500; m++) {
    for (const factor of [
      (m * (b - m) * x) / ((a + 2 * m - 1) * (a + 2 * m)),
      (-(a + m) * (a + b + m) * x) / ((a + 2 * m) * (a + 2 * m + 1)),
    ]) {
      d = 1 / away(1 + factor * d)
      c = away(1 + factor / c)
      sum *= c * d
    }
    if (Math.abs(c * d - 1) < 1e-15) break
  }
  return sum
}

const lanczos = [
  676.5203681218851, -1259.1392167224028, 771.3234287776531, -176.6150291621406, 12.507343278686905,
  -0.13857109526572012, 9.984369578019572e-6, 1.5056327351493116e-7,
]

/** The logarithm of Γ(x) for x > 0, by Lanczos' approximation (1964). */
function logGamma(x: number): number {
  if (x < 0.5) return Math.log(Math.PI / Math.sin(Math.PI * x)) - logGamma(1 - x)
  const shifted = x - 1
  const sum = lanczos.reduce(
    (total, value, index) => total + value / (shifted + index + 1),
    0.9999999999998099,
  )
  const base = shifted + 7.5
  return 0.5 * Math.log(2 * Math.PI) + (shifted + 0.5) * Math.log(base) - base + Math.log(sum)
}
