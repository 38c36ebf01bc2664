import { normalisers, offsetsOf, selectRows } from '../math/batch.ts'
import type { KlPenalty } from '../math/kl.ts'
import type { LossResult, PolicyTokens } from '../math/loss.ts'
import { type DivergentToken, type PolicyMetrics, policyMetrics } from '../math/metrics.ts'
import { random, seedOf, shuffle } from '../math/random.ts'
import type { NamedOptions, PolicyLoss } from '../math/registry.ts'
import type { EmbeddedModel, TrainingRow, UpdateOptions } from './model.ts'

/** A row with what its tokens are worth. */
export interface WeighedRow extends TrainingRow {
  /** As recorded when they were sampled; 0 where nothing was. */
  readonly logprobs: Float32Array
  readonly advantages: Float64Array
  readonly weights: Float64Array
  /** Rows of one trajectory have the same number. */
  readonly trajectory: number
}

/** How a model learns from rows. */
export interface LearnOptions {
  readonly loss: PolicyLoss
  /** Options of that loss. */
  readonly lossOptions: NamedOptions
  /** Passes over the rows. */
  readonly epochs: number
  /** Updates per pass: the rows are dealt into as many parts. */
  readonly updates: number
  readonly entropy: number
  /** Holds the policy near a reference, whose log-probabilities these are, row by row. */
  readonly kl?: { readonly penalty: KlPenalty; readonly reference: readonly Float32Array[] }
  readonly update: UpdateOptions
  readonly seed: number
  readonly signal: AbortSignal
}

/** What learning did. */
export interface Learned {
  /** Of all updates, averaged. */
  readonly loss: number
  readonly terms: LossResult['terms']
  readonly clipped: LossResult['clipped']
  readonly gradientNorm: number
  readonly entropy: number
  readonly updates: number
}

/** Updates a model by a policy loss on rows, ratios starting from their recorded log-probabilities. */
export async function learn(
  model: EmbeddedModel,
  rows: readonly WeighedRow[],
  options: LearnOptions,
): Promise<Learned> {
  const batch = toBatch(rows, options.kl?.reference)
  const sums = { loss: 0, policy: 0, kl: 0, entropyTerm: 0, low: 0, high: 0, dual: 0, norm: 0 }
  let entropy = 0
  let updates = 0
  for (let epoch = 0; epoch < options.epochs; epoch++) {
    for (const part of dealRows(rows, options, epoch)) {
      options.signal.throwIfAborted()
      const result = await gradientOf(model, { rows, batch, part }, options)
      const { gradientNorm } = await model.applyGradient(options.update)
      sums.loss += result.loss
      sums.policy += result.terms.policy
      sums.kl += result.terms.kl
      sums.entropyTerm += result.terms.entropy
      sums.low += result.clipped.low
      sums.high += result.clipped.high
      sums.dual += result.clipped.dual
      sums.norm += gradientNorm
      entropy += result.entropy
      updates++
    }
  }
  return {
    loss: sums.loss / updates,
    terms: {
      policy: sums.policy / updates,
      kl: sums.kl / updates,
      entropy: sums.entropyTerm / updates,
    },
    clipped: { low: sums.low / updates, high: sums.high / updates, dual: sums.dual / updates },
    gradientNorm: sums.norm / updates,
    entropy: entropy / updates,
    updates,
  }
}

type Batch = Omit<PolicyTokens, 'logprobs' | 'entropies'>

function toBatch(rows: readonly WeighedRow[], reference?: readonly Float32Array[]): Batch {
  const offsets = offsetsOf(rows.map(({ ids }) => ids.length))
  const length = offsets.at(-1)!
  const mask = new Uint8Array(length)
  const oldLogprobs = new Float64Array(length)
  const advantages = new Float64Array(length)
  const weights = new Float64Array(length)
  const refLogprobs = reference && new Float64Array(length)
  rows.forEach((row, index) => {
    const start = offsets[index]!
    mask.set(row.mask, start)
    oldLogprobs.set(row.logprobs, start)
    advantages.set(row.advantages, start)
    weights.set(row.weights, start)
    refLogprobs?.set(reference![index]!, start)
  })
  const trajectory = Int32Array.from(rows, row => row.trajectory)
  return {
    offsets,
    mask,
    trajectory,
    oldLogprobs,
    advantages,
    weights,
    ...(refLogprobs && { refLogprobs }),
  }
}

/** Deals rows into parts, trajectories kept whole; the order is the seed's. */
function dealRows(
  rows: readonly WeighedRow[],
  { updates, seed }: LearnOptions,
  epoch: number,
): readonly (readonly number[])[] {
  const all = rows.map((_, index) => index)
  if (updates === 1) return [all]
  const trajectories = [...new Set(rows.map(row => row.trajectory))]
  const order = shuffle(trajectories, random(seedOf(seed, 'parts', epoch)))
  const partOf = new Map(order.map((trajectory, index) => [trajectory, index % updates]))
  return Array.from({ length: updates }, (_, part) =>
    all.filter(index => partOf.get(rows[index]!.trajectory) === part),
  ).filter(part => part.length > 0)
}

async function gradientOf(
  model: EmbeddedModel,
  { rows, batch, part }: { rows: readonly WeighedRow[]; batch: Batch; part: readonly number[] },
  { loss, lossOptions, entropy, kl }: LearnOptions,
) {
  const own = part.length === rows.length ? batch : selectRows(batch, part)
  const whole = normalisers(own)
  return await model.gradient(
    part.map(index => rows[index]!),
    ({ logprobs, entropies }) => {
      const result = loss(
        { ...own, logprobs, entropies },
        { ...lossOptions, normalisers: whole, entropy, ...(kl && { kl: kl.penalty }) },
      )
      const trained = entropies.reduce((sum, value) => sum + value, 0)
      return {
        ...result,
        logprobGradient: result.gradient,
        entropy: trained / Math.max(1, whole.tokens),
      }
    },
  )
}

/** The log-probabilities of a row's tokens under a model, 0 where they are not trained. */
export async function scoreRow(
  model: EmbeddedModel,
  { ids, mask, temperature }: TrainingRow,
  signal: AbortSignal,
): Promise<{ readonly logprobs: Float32Array; readonly entropies: Float32Array }> {
  const logprobs = new Float32Array(ids.length)
  const entropies = new Float32Array(ids.length)
  const from = mask.indexOf(1)
  if (from < 0) return { logprobs, entropies }
  const scored = await model.score(ids, from, { temperature }, { signal })
  for (let token = from; token < ids.length; token++) {
    if (mask[token] === 0) continue
    logprobs[token] = scored.logprobs[token - from]!
    entropies[token] = scored.entropies[token - from]!
  }
  return { logprobs, entropies }
}

/** How far a model has moved from the log-probabilities its rows were sampled with. */
export async function measureChange(
  model: EmbeddedModel,
  rows: readonly WeighedRow[],
  { signal, top, temperature }: { signal: AbortSignal; top: number; temperature: number },
): Promise<PolicyMetrics | undefined> {
  const scores = await Promise.all(rows.map(row => scoreRow(model, row, signal)))
  const batch = toBatch(rows)
  const logprobs = new Float64Array(batch.mask.length)
  const entropies = new Float64Array(batch.mask.length)
  scores.forEach((score, row) => {
    logprobs.set(score.logprobs, batch.offsets[row]!)
    entropies.set(score.entropies, batch.offsets[row]!)
  })
  const basis = temperature === 0 ? 'raw' : 'tempered'
  return policyMetrics({ ...batch, logprobs, entropies } as Parameters<typeof policyMetrics>[0], {
    top,
    basis,
    temperature,
  })
}

/** A token of the largest change, as people read it. */
export interface ChangedToken extends DivergentToken {
  readonly text: string
  /** The words before it. */
  readonly after: string
}
