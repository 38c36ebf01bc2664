import { readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import type { Tokenizer } from '@espalier/text/tokenizers'
import type { Group } from '../../base/core/group.ts'
import type { TrajectoryId } from '../../base/core/ids.ts'
import type { Row } from '../../base/core/row.ts'
import type { Trainer, TrainerStep } from '../../base/core/trainer.ts'
import type { Tree } from '../../base/core/tree.ts'
import { offsetsOf } from '../../base/math/batch.ts'
import type { LeafWeighting } from '../../base/math/credit.ts'
import { type EntropyTarget, nextEntropyCoefficient } from '../../base/math/entropy.ts'
import type { KlPenalty } from '../../base/math/kl.ts'
import type { DivergentToken } from '../../base/math/metrics.ts'
import { lossNamed, type NamedOptions } from '../../base/math/registry.ts'
import { type Schedule, scheduleAt } from '../../base/math/schedule.ts'
import { checkImportance } from '../../engine/weigh/importance.ts'
import { pathsOf, type RowBonus } from '../../run/rows/paths.ts'
import { groupRows, type MemberRow } from '../../run/rows/row-record.ts'
import { defaults } from '../../run/settings/settings.ts'
import {
  type ChangedToken,
  type LearnOptions,
  type Lesson,
  learn,
  measureChange,
  type SampledRow,
} from '../model/learn.ts'
import type { EmbeddedModel } from '../model/model.ts'
import { rendererFor } from '../model/teach.ts'
import { mismatchMetrics, offPolicy, referenceOf } from './embedded-off-policy.ts'
import { makeOwnRate, shortenStep } from './own-rate.ts'

/** Constant, a schedule, or `auto`, which finds itself. */
export type LearningRate = number | Schedule | 'auto'

/** How the embedded model learns from groups. */
export interface EmbeddedTrainerOptions {
  /** Constant, a schedule, or `auto`: as high as keeps each step's change of the policy small. @default 'auto' */
  readonly learningRate?: LearningRate
  /** The largest gradient norm. @default 1 */
  readonly clip?: number
  /** @default 0 */
  readonly weightDecay?: number
  /** Updates over which the rate rises. @default 1 */
  readonly warmup?: number
  /** The policy loss. @default 'ppo' */
  readonly loss?: string
  /** Options of that loss. @default a clip of 0.2 below and 0.28 above, if it has one */
  readonly lossOptions?: NamedOptions
  /** Passes over each batch. @default 1 */
  readonly epochs?: number
  /** Updates per pass. @default 1 */
  readonly updates?: number
  /** Coefficient of the entropy bonus: fixed, by schedule, or steered by a target. @default 0 */
  readonly entropy?: number | Schedule | EntropyTarget
  /** Holds the policy near a model, or near the reference that scored what was sampled. @default none */
  readonly kl?: { readonly penalty: KlPenalty; readonly reference: EmbeddedModel | 'scored' }
  /** Where ratios start from: as recorded, or computed again before learning (decoupled PPO). @default 'recorded' */
  readonly proximal?: 'recorded' | 'recompute'
  /** Weights that correct for tokens sampled by other weights or another engine; those of ratios need `recompute`. @default none */
  readonly importance?: readonly string[]
  /** @default 'uniform' */
  readonly weighting?: LeafWeighting
  /** Adds to the advantages of trained tokens, row by row. */
  readonly bonus?: TokenBonus
  /** Rows on which the change of the policy is measured after each step. @default 32 */
  readonly measured?: number
  /** Tokens of the largest change to report. @default 5 */
  readonly top?: number
  /** @default 0 */
  readonly seed?: number
}

/** Gives each row's tokens something on top of their advantage; `undefined` gives nothing. */
export type TokenBonus = (
  rows: readonly MemberRow[],
  call: {
    readonly signal: AbortSignal
    /** What a trajectory of the batch earned. */
    rewardOf(trajectory: TrajectoryId): number | undefined
  },
) => Promise<readonly (RowBonus | undefined)[]>

/** A step of the embedded trainer; its measurement also says which tokens changed most. */
export interface EmbeddedStep extends TrainerStep {
  measure(): Promise<Measured>
}

interface Measured extends Pick<TrainerStep, 'metrics'> {
  readonly top: readonly ChangedToken[]
}

/** A trainer with such steps. */
export interface EmbeddedTrainer extends Trainer {
  step(groups: readonly Group[], call: { readonly signal: AbortSignal }): Promise<EmbeddedStep>
}

/** Trains an embedded model on groups; disposing of it leaves the model open. */
export function embeddedTrainer(
  model: EmbeddedModel,
  options: EmbeddedTrainerOptions = {},
): EmbeddedTrainer {
  const settings = readOptions(options)
  const { tokenizer } = rendererFor('embedded', model.files)
  const own = makeOwnRate()
  let steps = 0
  let kept = 0
  let used = 0
  return {
    name: 'embedded',
    async step(groups, { signal }) {
      const members = groups.flatMap(group => groupRows(group, { weighting: settings.weighting }))
      const made = await toLesson(members, settings, { signal, rewardOf: rewardsOf(groups) })
      const trained = worthwhile(made)
      const metrics: Record<string, number> = batchMetrics(model, members, trained)
      const step = steps++
      used = coefficientAt(settings.entropy, step) ?? used
      // The optimiser makes full steps of the tiniest gradient, so a bonus or a penalty alone would ruin the policy.
      if (trained.length === 0) {
        const measure = async () => ({ metrics: {}, top: [] })
        return { version: model.version(), metrics, measure }
      }
      const { lesson, measured } = await offPolicy(model, { made, members }, { settings, signal })
      Object.assign(metrics, measured)
      const { learningRate: rate } = settings
      const learningRate = rate === 'auto' ? own.now() : rateAt(rate, step)
      const options = await learnOptions(members, lesson.rows, {
        settings,
        signal,
        step,
        learningRate,
      })
      const from = rate === 'auto' ? await model.weights() : undefined
      const learned = await learn(model, lesson, { ...options, entropy: used })
      if (isTarget(settings.entropy)) {
        ;({ kept, used } = nextEntropyCoefficient(kept, learned.entropy, settings.entropy))
      }
      Object.assign(metrics, mismatchMetrics(learned.before), learnedMetrics(learned))
      const measuring = () => measure(model, trained, { settings, signal, tokenizer })
      if (!from) return { version: model.version(), metrics, measure: measuring }
      const { whole, change } = await shortenStep(model, from, measuring)
      own.learn(whole)
      Object.assign(metrics, { learningRate })
      return { version: model.version(), metrics, measure: async () => change }
    },
    async save(folder) {
      await model.save(folder)
      await model.saveOptimizer(folder)
      await writeFile(
        join(folder, progressName),
        `${JSON.stringify({ steps, kept, used, rate: own.now() })}\n`,
      )
    },
    async load(folder) {
      await model.load(folder)
      await model.loadOptimizer(folder)
      const text = await readFile(join(folder, progressName), 'utf8')
      const progress = JSON.parse(text) as Progress
      ;({ steps, kept, used } = progress)
      if (progress.rate !== undefined) own.set(progress.rate)
      return { version: model.version() }
    },
    async [Symbol.asyncDispose]() {},
  }
}

/** How far a step has moved the policy on some of its rows. */
async function measure(
  model: EmbeddedModel,
  rows: readonly SampledRow[],
  {
    settings: { measured, top },
    signal,
    tokenizer,
  }: { settings: Read; signal: AbortSignal; tokenizer: Tokenizer },
): Promise<Measured> {
  const { temperature } = rows[0]!
  const change = await measureChange(model, rows.slice(0, measured), { signal, top, temperature })
  const changed = change?.change?.top ?? []
  return {
    metrics: changeMetrics(change),
    top: changed.map(token => inWords(token, rows, tokenizer)),
  }
}

/** How far schedules and targets have come; written beside the weights. */
const progressName = 'schedule.json'

interface Progress {
  readonly steps: number
  readonly kept: number
  readonly used: number
  /** The rate that found itself. */
  readonly rate?: number
}

function rateAt(rate: number | Schedule, step: number): number {
  return typeof rate === 'number' ? rate : scheduleAt(rate, step)
}

type EntropyBonus = number | Schedule | EntropyTarget

const isTarget = (entropy: EntropyBonus): entropy is EntropyTarget =>
  typeof entropy === 'object' && !('kind' in entropy)

/** The coefficient of a step; none if a measurement decides it. */
function coefficientAt(entropy: EntropyBonus, step: number): number | undefined {
  if (isTarget(entropy)) return undefined
  return typeof entropy === 'number' ? entropy : scheduleAt(entropy, step)
}

interface OneStep {
  readonly settings: Read
  readonly signal: AbortSignal
  readonly step: number
  readonly learningRate: number
}

async function learnOptions(
  members: readonly MemberRow[],
  rows: readonly SampledRow[],
  { settings, signal, step, learningRate }: OneStep,
): Promise<Omit<LearnOptions, 'entropy'>> {
  const { loss, lossOptions, epochs, updates, kl, clip, weightDecay, warmup, seed } = settings
  const reference = kl && (await referenceOf(kl.reference, { members, rows, signal }))
  return {
    loss: lossNamed(loss),
    lossOptions,
    epochs,
    updates,
    ...(kl && reference && { kl: { penalty: kl.penalty, reference } }),
    update: { learningRate, clip, weightDecay, warmup },
    seed: seed + step,
    signal,
  }
}

/** How many tokens before a changed one are shown with it. */
const shownBefore = 12

function inWords(
  token: DivergentToken,
  rows: readonly SampledRow[],
  tokenizer: Tokenizer,
): ChangedToken {
  const { ids } = rows[token.row]!
  const { position } = token
  return {
    ...token,
    text: tokenizer.decode(ids.subarray(position, position + 1)),
    after: tokenizer.decode(ids.subarray(Math.max(0, position - shownBefore), position)),
  }
}

type Read = Required<Omit<EmbeddedTrainerOptions, 'kl' | 'bonus'>> &
  Pick<EmbeddedTrainerOptions, 'kl' | 'bonus'>

const ownDefaults = {
  learningRate: defaults.learningRate as LearningRate,
  clip: 1,
  weightDecay: 0,
  warmup: 1,
  loss: defaults.loss,
  epochs: defaults.epochs,
  updates: defaults.updates,
  entropy: defaults.entropyBonus,
  weighting: defaults.weighting,
  proximal: defaults.proximal,
  importance: defaults.importance as readonly string[],
  measured: 32,
  top: 5,
  seed: defaults.seed,
}

/** Losses with PPO's clip use DAPO's bounds, higher above than below. */
const clipping = ['ppo', 'grpo', 'bnpo', 'dr-grpo']

/** The options that a loss is trained with unless others are given. */
export function usualLossOptions(loss: string): NamedOptions {
  return clipping.includes(loss) ? { low: 0.2, high: 0.28 } : {}
}

function readOptions(options: EmbeddedTrainerOptions): Read {
  const known = [...Object.keys(ownDefaults), 'lossOptions', 'kl', 'bonus']
  const unknown = Object.keys(options).find(key => !known.includes(key))
  if (unknown !== undefined) {
    throw new TypeError(`The trainer has no option "${unknown}". Known: ${known.join(', ')}.`)
  }
  const loss = options.loss ?? ownDefaults.loss
  lossNamed(loss)
  checkImportance(options.importance ?? [], options.proximal)
  const lossOptions = { ...usualLossOptions(loss), ...options.lossOptions }
  const read = { ...ownDefaults, ...options, lossOptions }
  // Schedules are refused before anything is rolled.
  coefficientAt(read.entropy, 0)
  if (read.learningRate !== 'auto') rateAt(read.learningRate, 0)
  return read
}

/** What the trajectories of a batch earned. */
export function rewardsOf(groups: readonly Group[]): Parameters<TokenBonus>[1]['rewardOf'] {
  const members = groups.flatMap(group => group.members)
  const rewards = new Map(members.map(({ trajectory, reward }) => [trajectory.id, reward.total]))
  return trajectory => rewards.get(trajectory)
}

/** The rows of a batch as the model learns from them, and the trajectories over their tokens. */
async function toLesson(
  members: readonly MemberRow[],
  { bonus }: Read,
  call: Parameters<TokenBonus>[1],
): Promise<Lesson> {
  const bonuses = bonus ? await bonus(members, call) : []
  const numbers = new Map(members.map(({ tree }) => [tree, 0]))
  for (const [index, tree] of [...numbers.keys()].entries()) numbers.set(tree, index)
  const rows = members.map(({ row, tree }) => toSampledRow(row, tree, numbers.get(tree)!))
  const { paths, firstRow } = pathsOf(
    members.map(({ row }, index) => ({
      row,
      length: rows[index]!.ids.length,
      ...(bonuses[index] && { bonus: bonuses[index] }),
    })),
  )
  return { rows, paths, trees: firstRow.map(row => rows[row]!.tree) }
}

function toSampledRow(row: Row, { sampling }: Tree, tree: number): SampledRow {
  const { ids, mask, logprobs, trajectory } = row
  const missing = logprobs.findIndex((value, token) => mask[token] === 1 && Number.isNaN(value))
  if (missing >= 0) {
    throw new Error(
      `${trajectory.id} has no log-probability at token ${missing}: the embedded trainer needs a policy that gives them.`,
    )
  }
  // What was observed after the last sample is never trained on, and may not fit the model.
  const end = mask.lastIndexOf(1) + 1
  return {
    ids: ids.subarray(0, end),
    mask: mask.subarray(0, end),
    logprobs: logprobs.subarray(0, end),
    temperature: sampling.temperature,
    tree,
    origins: row.origins,
  }
}

/** The rows with a token whose advantage is not zero for some trajectory. */
function worthwhile({ rows, paths }: Lesson): readonly SampledRow[] {
  const starts = offsetsOf(rows.map(({ ids }) => ids.length))
  const worth = new Uint8Array(starts.at(-1)!)
  paths.tokens.forEach((token, entry) => {
    if (paths.advantages[entry] !== 0) worth[token] = 1
  })
  return rows.filter((_, row) => worth.subarray(starts[row], starts[row + 1]).includes(1))
}

function batchMetrics(
  model: EmbeddedModel,
  members: readonly MemberRow[],
  trained: readonly SampledRow[],
): Record<string, number> {
  const current = model.version()
  const ages = members.flatMap(({ row }) => row.versions.map(({ value }) => current - value.from))
  const tokens = trained.reduce((sum, { mask }) => sum + mask.reduce((a, b) => a + b, 0), 0)
  return {
    rows: members.length,
    trainedRows: trained.length,
    trainedTokens: tokens,
    meanStaleness: ages.reduce((sum, age) => sum + age, 0) / Math.max(1, ages.length),
    maximumStaleness: ages.reduce((most, age) => Math.max(most, age), 0),
  }
}

function learnedMetrics(learned: Awaited<ReturnType<typeof learn>>): Record<string, number> {
  const { loss, terms, clipped, gradientNorm, entropy, updates, computed } = learned
  return {
    computedTokens: computed.tokens,
    rowTokens: computed.of,
    loss,
    policyLoss: terms.policy,
    klLoss: terms.kl,
    entropyLoss: terms.entropy,
    clippedLow: clipped.low,
    clippedHigh: clipped.high,
    clippedDual: clipped.dual,
    gradientNorm,
    entropy,
    updates,
  }
}

function changeMetrics(metrics: Awaited<ReturnType<typeof measureChange>>): Record<string, number> {
  const { change } = metrics ?? {}
  if (!metrics || !change) return {}
  return {
    meanLogprob: metrics.meanLogprob,
    confidence: metrics.confidence,
    meanOldLogprob: change.meanOldLogprob,
    meanDifference: change.meanDifference,
    kl: change.kl,
    maximumKl: change.maximumKl,
    minimumRatio: change.minimumRatio,
    maximumRatio: change.maximumRatio,
    effectiveSampleShare: change.effectiveSampleShare,
    ...(change.clipped && {
      movedBelow: change.clipped.low,
      movedAbove: change.clipped.high,
    }),
  }
}
