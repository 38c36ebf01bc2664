// Sine, cosine and powers from additions and multiplications only: `Math.sin` gives different bits in
// different versions of Node, and rotary positions must not change.

const halfPi = 1.5707963267948966
/** π/2 less the double above. */
const halfPiRest = 6.123233995736766e-17

/** (cos x, sin x) for |x| up to about 10^5, to some 1e-12. */
export function cosineAndSine(x: number): readonly [number, number] {
  const quarter = Math.round(x / halfPi)
  const rest = x - quarter * halfPi - quarter * halfPiRest
  const square = rest * rest
  let cosine = 0
  let sine = 0
  for (let term = 10; term > 0; term--) {
    cosine = (1 + cosine) * (-square / ((2 * term - 1) * (2 * term)))
    sine = (1 + sine) * (-square / (2 * term * (2 * term + 1)))
  }
  const c = 1 + cosine
  const s = rest * (1 + sine)
  switch (((quarter % 4) + 4) % 4) {
    case 0:
      return [c, s]
    case 1:
      return [-s, c]
    case 2:
      return [-c, -s]
    default:
      return [s, -c]
  }
}

/** e^x for moderate x: a series on x / 1024, squared ten times. */
export function exponential(x: number): number {
  const small = x / 1024
  let sum = 1
  for (let term = 12; term > 0; term--) sum = 1 + (small / term) * sum
  for (let square = 0; square < 10; square++) sum *= sum
  return sum
}
