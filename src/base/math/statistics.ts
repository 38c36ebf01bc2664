/** Numbers in a row, plain or typed; nothing here writes to them. */
export type Numbers = ArrayLike<number>

/** How a spread is estimated: `sample` divides by n − 1 (torch's default), `population` by n. */
export type DeviationKind = 'sample' | 'population'

/** The arithmetic mean; NaN of nothing. Equal values give exactly that value, without rounding. */
export function mean(values: Numbers): number {
  return weightedMean(values)
}

/**
 * Σ w·x / Σ w; without weights every value counts once. NaN when the weights sum to 0.
 * Summed as a distance from the first counted value, so that equal values have no rounding noise.
 */
export function weightedMean(values: Numbers, weights?: Numbers): number {
  const first = firstCounted(values, weights)
  if (first < 0) return Number.NaN
  const origin = values[first]!
  let total = 0
  let weight = 0
  for (let index = first; index < values.length; index++) {
    const share = weights === undefined ? 1 : weights[index]!
    if (share === 0) continue
    total += share * (values[index]! - origin)
    weight += share
  }
  return origin + total / weight
}

/** Root of the mean squared distance from the mean; 0 of a single value, NaN of nothing. */
export function deviation(values: Numbers, kind: DeviationKind = 'sample'): number {
  return weightedDeviation(values, { kind })
}

/**
 * The spread under weights. The sample form divides by Σw − Σw² / Σw, which is n − 1 for equal
 * weights of any size and for a mask of zeros and ones.
 */
export function weightedDeviation(
  values: Numbers,
  { weights, kind = 'sample' }: { weights?: Numbers | undefined; kind?: DeviationKind } = {},
): number {
  const centre = weightedMean(values, weights)
  if (Number.isNaN(centre)) return Number.NaN
  let squares = 0
  let total = 0
  let totalOfSquares = 0
  for (let index = 0; index < values.length; index++) {
    const share = weights === undefined ? 1 : weights[index]!
    if (share === 0) continue
    squares += share * (values[index]! - centre) ** 2
    total += share
    totalOfSquares += share * share
  }
  const divisor = kind === 'sample' ? total - totalOfSquares / total : total
  return squares === 0 || divisor <= 0 ? 0 : Math.sqrt(squares / divisor)
}

/** The q-quantile with linear interpolation between neighbours (numpy's default); NaN of nothing. */
export function quantile(values: Numbers, q: number): number {
  if (!(q >= 0 && q <= 1)) throw new RangeError(`A quantile lies in [0, 1], got ${q}.`)
  const sorted = Float64Array.from(values).sort()
  if (sorted.length === 0) return Number.NaN
  const place = (sorted.length - 1) * q
  const below = sorted[Math.floor(place)]!
  const above = sorted[Math.ceil(place)]!
  return below === above ? below : below + (above - below) * (place - Math.floor(place))
}

function firstCounted(values: Numbers, weights: Numbers | undefined): number {
  if (weights === undefined) return values.length > 0 ? 0 : -1
  if (weights.length !== values.length) {
    throw new RangeError(`${values.length} values have ${weights.length} weights.`)
  }
  for (let index = 0; index < values.length; index++) if (weights[index] !== 0) return index
  return -1
}
