import type { Row } from '../../base/core/row.ts'
import {
  type Normalisers,
  normalisers,
  offsetsOf,
  selectRows,
  type TokenNumbers,
} from '../../base/math/batch.ts'
import type { KlPenalty } from '../../base/math/kl.ts'
import type { LossResult } from '../../base/math/loss.ts'
import { type DivergentToken, type PolicyMetrics, policyMetrics } from '../../base/math/metrics.ts'
import { pathLoss, type TokenPaths } from '../../base/math/paths.ts'
import { random, seedOf, shuffle } from '../../base/math/random.ts'
import type { NamedOptions, PolicyLoss } from '../../base/math/registry.ts'
import type { EmbeddedModel, TrainingRow, UpdateOptions } from './model.ts'

/** A row as it was sampled. */
export interface SampledRow extends TrainingRow {
  /** As recorded when they were sampled; 0 if nothing was. */
  readonly logprobs: Float32Array
  /** Under the weights before learning, where ratios start from them instead. */
  readonly proximal?: Float32Array
  /** Rows of one tree have the same number; they are learned from together. */
  readonly tree: number
  /** Who put its tokens there. */
  readonly origins: Row['origins']
}

/** The training data: rows that hold each token once, and the trajectories over their tokens. */
export interface Lesson {
  readonly rows: readonly SampledRow[]
  /** Over the tokens of all rows, laid end to end. */
  readonly paths: TokenPaths
  /** Per path: the tree it is of. */
  readonly trees: Int32Array
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
  /** Tokens that went through the model in all updates, and those of the rows: fewer if rows begin alike. */
  readonly computed: { readonly tokens: number; readonly of: number }
  /** Log-probabilities of the first update's rows under the weights before it. */
  readonly before: ScoredRows
}

/** Rows, and the log-probabilities of their tokens laid end to end. */
export interface ScoredRows {
  readonly rows: readonly SampledRow[]
  readonly logprobs: TokenNumbers
}

/**
 * Updates a model by a policy loss on trajectories, ratios starting from recorded log-probabilities:
 * forward over rows that hold each token once, the loss over every trajectory's path.
 */
export async function learn(
  model: EmbeddedModel,
  lesson: Lesson,
  options: LearnOptions,
): Promise<Learned> {
  const sums = { loss: 0, policy: 0, kl: 0, entropyTerm: 0, low: 0, high: 0, dual: 0, norm: 0 }
  let entropy = 0
  let updates = 0
  const computed = { tokens: 0, of: 0 }
  let before: ScoredRows = { rows: [], logprobs: new Float64Array(0) }
  for (let epoch = 0; epoch < options.epochs; epoch++) {
    for (const trees of dealTrees(lesson, options, epoch)) {
      options.signal.throwIfAborted()
      const result = await gradientOf(
        model,
        { lesson, part: partOf(lesson, trees, options) },
        options,
      )
      if (updates === 0) before = result.scored
      computed.tokens += result.computed.tokens
      computed.of += result.computed.of
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
    computed,
    before,
  }
}

/** Deals trees into parts; the order is the seed's. */
function dealTrees(
  { trees, paths }: Lesson,
  { updates, seed }: LearnOptions,
  epoch: number,
): readonly ReadonlySet<number>[] {
  const all = [...new Set(trees)]
  if (updates === 1) return [new Set(all)]
  const order = shuffle(all, random(seedOf(seed, 'parts', epoch)))
  const parts = Array.from(
    { length: updates },
    (_, part) => new Set(order.filter((_, index) => index % updates === part)),
  )
  // A part without any advantage would make a whole step of a bonus or a penalty alone.
  const teaching = new Set([...trees].filter((_, path) => isTeaching(paths, path)))
  return parts.filter(part => [...part].some(tree => teaching.has(tree)))
}

/** What one update learns from. */
interface Part {
  /** The rows to go forward over, by their numbers. */
  readonly rows: readonly number[]
  /** Over their tokens. */
  readonly paths: TokenPaths
  /** Of all trajectories of the part, those that teach nothing included. */
  readonly whole: Normalisers
}

/**
 * The trajectories of some trees. One whose advantage is zero everywhere has no gradient unless a
 * bonus or a penalty gives it one: it counts in every mean, but rows that only such trajectories pass
 * through are skipped.
 */
function partOf(
  { rows, paths, trees }: Lesson,
  chosen: ReadonlySet<number>,
  { entropy, kl }: LearnOptions,
): Part {
  const numbers = [...trees.keys()].filter(path => chosen.has(trees[path]!))
  const whole = normalisers(selectRows(paths, numbers))
  const teaching = entropy !== 0 || kl ? numbers : numbers.filter(path => isTeaching(paths, path))
  const live = selectRows(paths, teaching)
  const starts = offsetsOf(rows.map(({ ids }) => ids.length))
  const named = new Uint8Array(starts.at(-1)!)
  for (const token of live.tokens) named[token] = 1
  const needed = [...rows.keys()].filter(row =>
    named.subarray(starts[row], starts[row + 1]).includes(1),
  )
  const place = new Int32Array(named.length)
  let size = 0
  for (const row of needed) {
    for (let token = starts[row]!; token < starts[row + 1]!; token++) place[token] = size++
  }
  return { rows: needed, paths: { ...live, tokens: live.tokens.map(t => place[t]!) }, whole }
}

/** Whether any token of a path has an advantage other than zero. */
function isTeaching({ offsets, advantages }: TokenPaths, path: number): boolean {
  return advantages.subarray(offsets[path], offsets[path + 1]).some(value => value !== 0)
}

async function gradientOf(
  model: EmbeddedModel,
  { lesson, part }: { readonly lesson: Lesson; readonly part: Part },
  { loss, lossOptions, entropy, kl }: LearnOptions,
) {
  const rows = part.rows.map(row => lesson.rows[row]!)
  const oldLogprobs = laidOut(rows.map(({ logprobs, proximal }) => proximal ?? logprobs))
  const refLogprobs = kl && laidOut(part.rows.map(row => kl.reference[row]!))
  const options = {
    ...lossOptions,
    normalisers: part.whole,
    entropy,
    ...(kl && { kl: kl.penalty }),
  }
  return await model.gradient(rows, ({ logprobs, entropies, mask, computed }) => {
    const numbers = { logprobs, entropies, oldLogprobs, ...(refLogprobs && { refLogprobs }) }
    const result = pathLoss(loss, part.paths, { ...numbers, options })
    const trained = mask.reduce((sum, bit) => sum + bit, 0)
    return {
      ...result,
      logprobGradient: result.gradient,
      entropy: entropies.reduce((sum, value) => sum + value, 0) / Math.max(1, trained),
      computed,
      scored: { rows, logprobs },
    }
  })
}

/** Lists laid end to end. */
export function laidOut(lists: readonly Float32Array[]): Float64Array {
  const offsets = offsetsOf(lists.map(({ length }) => length))
  const all = new Float64Array(offsets.at(-1)!)
  lists.forEach((list, index) => {
    all.set(list, offsets[index])
  })
  return all
}

/** The log-probabilities of a row's tokens under a model, 0 if they are not trained. */
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
  rows: readonly SampledRow[],
  { signal, top, temperature }: { signal: AbortSignal; top: number; temperature: number },
): Promise<PolicyMetrics | undefined> {
  const scores = await Promise.all(rows.map(row => scoreRow(model, row, signal)))
  const offsets = offsetsOf(rows.map(({ ids }) => ids.length))
  const mask = new Uint8Array(offsets.at(-1)!)
  rows.forEach((row, index) => {
    mask.set(row.mask, offsets[index])
  })
  const batch = {
    offsets,
    mask,
    trajectory: Int32Array.from(rows, ({ tree }) => tree),
    logprobs: laidOut(scores.map(({ logprobs }) => logprobs)),
    entropies: laidOut(scores.map(({ entropies }) => entropies)),
    oldLogprobs: laidOut(rows.map(({ logprobs }) => logprobs)),
  }
  const basis = temperature === 0 ? 'raw' : 'tempered'
  return policyMetrics(batch, { top, basis, temperature })
}

/** A token of the largest change, as people read it. */
export interface ChangedToken extends DivergentToken {
  readonly text: string
  /** The words before it. */
  readonly after: string
}
