import { weightedDeviation, weightedMean } from './statistics.ts'

/** One number per token. */
export type TokenNumbers = Float64Array | Float32Array

/**
 * Rows as flat arrays: row r holds the tokens offsets[r] .. offsets[r+1]. Only tokens with mask 1 are
 * trained; the others are context, and no formula ever reads their numbers. In every
 * sequence-level quantity a sequence is a trajectory: all rows with the same index, in their order.
 */
export interface TokenBatch {
  /** As many as rows, and one more. */
  readonly offsets: Int32Array
  /** Per token: 1 trained, 0 context. */
  readonly mask: Uint8Array
  /** Per row: the index of its trajectory, the same in every micro-batch of a batch. */
  readonly trajectory: Int32Array
  /** Per token: how much of the batch it stands for (credit); counts in every mean. Absent: 1. */
  readonly weights?: TokenNumbers
  /** Per trajectory index: how much of the batch the whole trajectory stands for. Absent: 1. */
  readonly trajectoryWeights?: Float64Array
}

/** What a whole batch divides by; micro-batches are handed those of the whole. */
export interface Normalisers {
  /** Trained tokens. */
  readonly tokens: number
  /** Σ weights of the trained tokens, each times its trajectory's; `tokens` without weights. */
  readonly weight: number
  /** Trajectories with at least one trained token, by their weights. */
  readonly trained: number
  /** All trajectories, those without a trained token included, by their weights. */
  readonly trajectories: number
  /** Per trajectory index: trained tokens. */
  readonly tokensOf: Int32Array
  /** Per trajectory index: Σ weights of its trained tokens, without its own. */
  readonly weightOf: Float64Array
}

/**
 * Counts a whole batch. `trajectories` corrects the number of all trajectories where some of them
 * left no row at all.
 */
export function normalisers(
  batch: TokenBatch,
  { trajectories }: { trajectories?: number } = {},
): Normalisers {
  checkBatch(batch)
  const size = batch.trajectory.reduce((most, index) => Math.max(most, index + 1), 0)
  const tokensOf = new Int32Array(size)
  const weightOf = new Float64Array(size)
  for (let row = 0; row < rowCount(batch); row++) {
    const index = batch.trajectory[row]!
    for (let token = batch.offsets[row]!; token < batch.offsets[row + 1]!; token++) {
      if (batch.mask[token] === 0) continue
      tokensOf[index]! += 1
      weightOf[index]! += batch.weights?.[token] ?? 1
    }
  }
  const weightAt = (index: number): number => batch.trajectoryWeights?.[index] ?? 1
  const seen = [...new Set(batch.trajectory)].reduce((sum, index) => sum + weightAt(index), 0)
  if (trajectories !== undefined && !(trajectories >= seen)) {
    throw new RangeError(`${seen} trajectories have rows, but only ${trajectories} were announced.`)
  }
  return {
    tokens: tokensOf.reduce((sum, count) => sum + count, 0),
    weight: weightOf.reduce((sum, weight, index) => sum + weightAt(index) * weight, 0),
    trained: tokensOf.reduce((sum, count, index) => sum + Math.min(count, 1) * weightAt(index), 0),
    trajectories: trajectories ?? seen,
    tokensOf,
    weightOf,
  }
}

/** How many rows a batch has. */
export function rowCount(batch: TokenBatch): number {
  return batch.trajectory.length
}

/** Calls `visit` for every trained token, with its trajectory. */
export function eachTrained(
  batch: TokenBatch,
  visit: (token: number, trajectory: number) => void,
): void {
  for (let row = 0; row < rowCount(batch); row++) {
    const end = batch.offsets[row + 1]!
    for (let token = batch.offsets[row]!; token < end; token++) {
      if (batch.mask[token] !== 0) visit(token, batch.trajectory[row]!)
    }
  }
}

/** Some rows of a batch as a batch, every per-token array cut along; trajectory indices are kept. */
export function selectRows<T extends TokenBatch>(batch: T, rows: readonly number[]): T {
  for (const row of rows) {
    if (batch.trajectory[row] !== undefined) continue
    throw new RangeError(`There is no row ${row}: the batch has ${rowCount(batch)}.`)
  }
  const lengths = rows.map(row => batch.offsets[row + 1]! - batch.offsets[row]!)
  const offsets = offsetsOf(lengths)
  const cut = Object.entries(batch).map(([key, value]) => {
    if (key === 'offsets') return [key, offsets]
    if (key === 'trajectory') return [key, Int32Array.from(rows, row => batch.trajectory[row]!)]
    if (!ArrayBuffer.isView(value) || key === 'trajectoryWeights') return [key, value]
    const values = value as Float64Array
    checkLength(batch, key, values)
    const selected = new (values.constructor as typeof Float64Array)(offsets.at(-1)!)
    rows.forEach((row, index) => {
      const own = values.subarray(batch.offsets[row]!, batch.offsets[row + 1]!)
      selected.set(own, offsets[index]!)
    })
    return [key, selected]
  })
  return Object.fromEntries(cut) as T
}

/** Where rows of these lengths begin and end in flat arrays. */
export function offsetsOf(lengths: ArrayLike<number>): Int32Array {
  const offsets = new Int32Array(lengths.length + 1)
  for (let row = 0; row < lengths.length; row++) offsets[row + 1] = offsets[row]! + lengths[row]!
  return offsets
}

/**
 * (v − μ) / √(σ² + ε) over the trained tokens, 0 elsewhere; mean and (sample) variance under the
 * batch's weights. Equal values become exactly 0. `countEpsilon` is added to the number of tokens
 * that the mean and the variance divide by: verl has 1e-8 there.
 */
export function whiten(
  batch: TokenBatch,
  values: TokenNumbers,
  { epsilon = 1e-8, countEpsilon = 0 }: { epsilon?: number; countEpsilon?: number } = {},
): Float64Array {
  checkLength(batch, 'values', values)
  const shares = Float64Array.from(batch.mask, (mask, token) =>
    mask === 0 ? 0 : (batch.weights?.[token] ?? 1),
  )
  const total = shares.reduce((sum, share) => sum + share, 0)
  const shrink = total / (total + countEpsilon)
  const centre = weightedMean(values, shares) * shrink
  const spread = weightedDeviation(values, { weights: shares })
  const scale = Math.sqrt(spread * spread * shrink + epsilon)
  return Float64Array.from(values, (value, token) =>
    shares[token] === 0 ? 0 : (value - centre) / scale,
  )
}

/** Refuses a batch whose arrays do not fit each other, naming both numbers. */
export function checkBatch(batch: TokenBatch): void {
  const { offsets, trajectory, mask } = batch
  if (offsets.length !== trajectory.length + 1) {
    throw new RangeError(
      `${trajectory.length} rows need ${trajectory.length + 1} offsets, got ${offsets.length}.`,
    )
  }
  for (let row = 0; row < trajectory.length; row++) {
    if (offsets[row + 1]! < offsets[row]!) {
      throw new RangeError(
        `Row ${row} begins at ${offsets[row]} and ends before, at ${offsets[row + 1]}.`,
      )
    }
    if (trajectory[row]! < 0) {
      throw new RangeError(`Row ${row} names trajectory ${trajectory[row]}; the first is 0.`)
    }
  }
  if (offsets[0] !== 0 || offsets.at(-1) !== mask.length) {
    throw new RangeError(
      `Offsets run from ${offsets[0]} to ${offsets.at(-1)}, tokens from 0 to ${mask.length}.`,
    )
  }
  if (batch.weights !== undefined) checkWeights(batch, batch.weights)
  if (batch.trajectoryWeights !== undefined) {
    checkTrajectoryWeights(batch, batch.trajectoryWeights)
  }
}

function checkTrajectoryWeights({ trajectory }: TokenBatch, weights: Float64Array): void {
  for (const index of trajectory) {
    const weight = weights[index]
    if (weight !== undefined && Number.isFinite(weight) && weight >= 0) continue
    throw new RangeError(
      `Trajectory ${index} has the weight ${weight}; it must be a finite number from 0 on.`,
    )
  }
}

function checkWeights(batch: TokenBatch, weights: TokenNumbers): void {
  checkTrained(batch, 'weights', weights)
  eachTrained(batch, token => {
    if (weights[token]! >= 0) return
    throw new RangeError(`Token ${token} has the negative weight ${weights[token]}.`)
  })
}

/** Refuses a per-token array of another length than the batch, naming both. */
function checkLength(batch: TokenBatch, name: string, values: ArrayLike<number>): void {
  if (values.length === batch.mask.length) return
  throw new RangeError(
    `The batch has ${batch.mask.length} tokens, but ${name} has ${values.length}.`,
  )
}

/** Refuses a trained token whose number is missing: NaN or infinite. */
export function checkTrained(batch: TokenBatch, name: string, values: TokenNumbers): void {
  checkLength(batch, name, values)
  eachTrained(batch, (token, trajectory) => {
    if (Number.isFinite(values[token])) return
    throw new RangeError(
      `${name} is ${values[token]} at trained token ${token} (trajectory ${trajectory}); ` +
        'a token without this number must have mask 0.',
    )
  })
}
