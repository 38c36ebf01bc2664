import { eachTrained, type Normalisers, type TokenBatch } from './batch.ts'
import { checkNumber, named, readOptions } from './options.ts'

/**
 * How token losses ℓ become one number. With w a token's weight, v_i a trajectory's (1 unless
 * given), W_i = Σ_t w over trajectory i, W = Σ_i v_i W_i, and N = Σ v_i over the trajectories that
 * train a token:
 * - `token-mean`: Σ_i v_i Σ_t w ℓ / W
 * - `sequence-mean-token-mean`: 1/N Σ_i v_i Σ_t w ℓ / W_i
 * - `sequence-mean-token-sum`: 1/N Σ_i v_i Σ_t w ℓ, divided by `length` if given (Dr. GRPO's constant)
 * - `trajectory-mean`: slime's default; as sequence-mean-token-mean, but over all trajectories,
 *   those without a trained token included
 * - `constant`: Σ_i v_i Σ_t w ℓ / divisor
 */
export type Aggregation =
  | { readonly kind: 'token-mean' }
  | {
      readonly kind: 'sequence-mean-token-mean'
      /** Added to W_i; verl has 1e-8 there. @default 0 */
      readonly countEpsilon?: number
    }
  | { readonly kind: 'sequence-mean-token-sum'; readonly length?: number }
  | { readonly kind: 'trajectory-mean' }
  | { readonly kind: 'constant'; readonly divisor: number }

/** The kinds of aggregation there are. */
export const aggregationNames = [
  'token-mean',
  'sequence-mean-token-mean',
  'sequence-mean-token-sum',
  'trajectory-mean',
  'constant',
] as const satisfies readonly Aggregation['kind'][]

/**
 * Each trained token's share in the aggregate, so that it is Σ share · ℓ; context has 0. Shares
 * depend on the whole batch's normalisers only, so micro-batches sum to the whole.
 */
export function tokenShares(
  batch: TokenBatch,
  aggregation: Aggregation,
  whole: Normalisers,
): Float64Array {
  const shares = new Float64Array(batch.mask.length)
  const divisor = divisorOf(aggregation, whole)
  eachTrained(batch, (token, trajectory) => {
    const weight = (batch.weights?.[token] ?? 1) * (batch.trajectoryWeights?.[trajectory] ?? 1)
    if (weight > 0) shares[token] = weight / divisor(trajectory)
  })
  return shares
}

/** What each kind may carry, with its default. */
const fields: { readonly [K in Aggregation['kind']]: Extract<Aggregation, { readonly kind: K }> } =
  {
    'token-mean': { kind: 'token-mean' },
    'sequence-mean-token-mean': { kind: 'sequence-mean-token-mean', countEpsilon: 0 },
    'sequence-mean-token-sum': { kind: 'sequence-mean-token-sum', length: 1 },
    'trajectory-mean': { kind: 'trajectory-mean' },
    constant: { kind: 'constant', divisor: Number.NaN },
  }

function divisorOf(given: Aggregation, whole: Normalisers): (trajectory: number) => number {
  const known = named<Aggregation>('aggregation', fields, given.kind)
  const aggregation = readOptions<Aggregation>(`The aggregation ${given.kind}`, known, given)
  switch (aggregation.kind) {
    case 'token-mean':
      return () => whole.weight
    case 'sequence-mean-token-mean': {
      const { countEpsilon = 0 } = aggregation
      checkNumber('countEpsilon', countEpsilon, { low: 0 })
      return trajectory => whole.trained * (whole.weightOf[trajectory]! + countEpsilon)
    }
    case 'sequence-mean-token-sum': {
      const { length = 1 } = aggregation
      checkNumber('length', length, { low: Number.MIN_VALUE })
      return () => whole.trained * length
    }
    case 'trajectory-mean':
      return trajectory => whole.trajectories * whole.weightOf[trajectory]!
    case 'constant': {
      const { divisor } = aggregation
      checkNumber('divisor', divisor, { low: Number.MIN_VALUE })
      return () => divisor
    }
    default:
      return aggregation satisfies never
  }
}
