import { checkNumber } from './options.ts'
import type { Random } from './random.ts'

/** A draw from Beta(a, b) with a, b ≥ 1: x / (x + y) of two draws from gamma distributions. */
export function betaDraw(a: number, b: number, draw: Random): number {
  checkNumber('a', a, { low: 1 })
  checkNumber('b', b, { low: 1 })
  const x = gammaDraw(a, draw)
  return x / (x + gammaDraw(b, draw))
}

/** A draw from Gamma(shape, 1) with shape ≥ 1, by rejection (Marsaglia and Tsang 2000). */
function gammaDraw(shape: number, draw: Random): number {
  const d = shape - 1 / 3
  const c = 1 / Math.sqrt(9 * d)
  for (;;) {
    const x = normalDraw(draw)
    const v = (1 + c * x) ** 3
    if (v > 0 && Math.log(1 - draw()) < 0.5 * x * x + d - d * v + d * Math.log(v)) return d * v
  }
}

/** A draw from the standard normal distribution (Box and Muller 1958). */
function normalDraw(draw: Random): number {
  return Math.sqrt(-2 * Math.log(1 - draw())) * Math.cos(2 * Math.PI * draw())
}
