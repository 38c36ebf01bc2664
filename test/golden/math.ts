import { type RewardedTrajectory, spreadAdvantages } from '../../src/base/math/advantage.ts'
import { bestOfGroupAdvantages } from '../../src/base/math/advantages/best-of-group.ts'
import { gpgAdvantages } from '../../src/base/math/advantages/gpg.ts'
import { drGrpoAdvantages, grpoAdvantages } from '../../src/base/math/advantages/grpo.ts'
import { opoAdvantages } from '../../src/base/math/advantages/opo.ts'
import {
  reinforcePlusPlusAdvantages,
  reinforcePlusPlusBaselineAdvantages,
} from '../../src/base/math/advantages/reinforce-plus-plus.ts'
import { rlooAdvantages } from '../../src/base/math/advantages/rloo.ts'
import type { Aggregation } from '../../src/base/math/aggregation.ts'
import { offsetsOf, type TokenBatch } from '../../src/base/math/batch.ts'
import { boundedK3, klTerm } from '../../src/base/math/kl.ts'
import type { LossResult, PolicyTokens } from '../../src/base/math/loss.ts'
import { cispoLoss } from '../../src/base/math/losses/cispo.ts'
import { gmpoLoss } from '../../src/base/math/losses/gmpo.ts'
import { gpgLoss } from '../../src/base/math/losses/gpg.ts'
import { gspoLoss } from '../../src/base/math/losses/gspo.ts'
import { bnpoLoss, drGrpoLoss, grpoLoss, ppoLoss } from '../../src/base/math/losses/ppo.ts'
import { sapoLoss } from '../../src/base/math/losses/sapo.ts'
import { policyMetrics } from '../../src/base/math/metrics.ts'
import type { GoldenResult, GoldenSuite } from './suite.ts'

/** One batch with the answers of verl and Twinkle; matrices are flattened row by row. */
interface Case {
  readonly seed: number
  readonly contiguous: boolean
  readonly shape: readonly [number, number]
  readonly oldLogp: readonly number[]
  readonly logp: readonly number[]
  readonly refLogp: readonly number[]
  readonly entropy: readonly number[]
  readonly mask: readonly number[]
  readonly reward: readonly number[]
  readonly groupId: readonly string[]
  readonly tokenAdvantages: Readonly<Record<string, readonly number[]>>
  readonly sequenceAdvantages: Readonly<Record<string, readonly number[]>>
  readonly losses: Readonly<Record<string, LossAnswer>>
  readonly metrics: Readonly<Record<string, Readonly<Record<string, number>>>>
  readonly kl: Readonly<Record<string, readonly number[]>>
}

interface LossAnswer {
  readonly loss: number
  readonly grad: readonly number[]
  readonly gradEntropy?: readonly number[] | null
  readonly metrics?: Readonly<Record<string, number>>
}

/** Answers as lists of numbers, so that one comparison serves all. */
interface Compared {
  readonly name: string
  readonly ours: ArrayLike<number>
  readonly theirs: ArrayLike<number>
  readonly tolerance: readonly [absolute: number, relative: number]
}

const exact = [1e-9, 1e-9] as const
/** The source computes its metrics in float32. */
const single = [1e-6, 1e-5] as const

/** Advantages, losses with gradients, metrics and KL estimators of verl and Twinkle. */
export const mathSuite: GoldenSuite = {
  name: 'math',
  matches: path => /^math[^/]*\.jsonl\.gz$/.test(path),
  run(text) {
    const result = { passed: 0, failures: [] as string[], notes: new Set<string>() }
    for (const line of text.split('\n').filter(Boolean)) {
      const golden = JSON.parse(line) as Case
      for (const compare of cases(golden)) {
        const problem = check(golden, compare, result.notes)
        if (problem === undefined) result.passed++
        else if (problem !== 'skipped') result.failures.push(problem)
      }
    }
    return { ...result, notes: [...result.notes].sort() } satisfies GoldenResult
  },
}

type Comparison = () => Compared | { readonly skipped: string }

function check(golden: Case, compare: Comparison, notes: Set<string>): string | undefined {
  try {
    const compared = compare()
    if ('skipped' in compared) {
      notes.add(`not required: ${compared.skipped}`)
      return 'skipped'
    }
    const problem = difference(compared)
    return problem && `seed ${golden.seed} ${compared.name}: ${problem}`
  } catch (error) {
    return `seed ${golden.seed}: ${error instanceof Error ? error.message : String(error)}`
  }
}

function difference({ ours, theirs, tolerance }: Compared): string | undefined {
  if (ours.length !== theirs.length) return `${ours.length} numbers, expected ${theirs.length}`
  for (let index = 0; index < theirs.length; index++) {
    const allowed = tolerance[0] + tolerance[1] * Math.abs(theirs[index]!)
    const distance = Math.abs(ours[index]! - theirs[index]!)
    if (!(distance <= allowed)) {
      return `${ours[index]} at ${index}, expected ${theirs[index]} (off by ${distance})`
    }
  }
  return undefined
}

function cases(golden: Case): Comparison[] {
  return [
    ...Object.keys(golden.tokenAdvantages).map(name => () => tokenAdvantageCase(golden, name)),
    ...Object.keys(golden.sequenceAdvantages).map(name => () => sequenceCase(golden, name)),
    ...Object.keys(golden.losses).flatMap(name => lossCases(golden, name)),
    ...Object.keys(golden.metrics).map(name => () => metricCase(golden, name)),
    ...Object.keys(golden.kl).map(name => () => klCase(golden, name)),
  ]
}

function batchOf({ shape: [rows, columns], mask }: Case): TokenBatch {
  return {
    offsets: offsetsOf(new Array(rows).fill(columns)),
    mask: Uint8Array.from(mask),
    trajectory: Int32Array.from({ length: rows }, (_, row) => row),
  }
}

function entriesOf(golden: Case): RewardedTrajectory[] {
  const columns = golden.shape[1]
  return golden.reward.map((reward, row) => ({
    group: golden.groupId[row]!,
    trajectory: row,
    reward,
    length: golden.mask
      .slice(row * columns, (row + 1) * columns)
      .reduce((sum, one) => sum + one, 0),
  }))
}

const verl = { countEpsilon: 1e-8, single: 'raw' } as const

const tokenAdvantages: Readonly<Record<string, (golden: Case) => Float64Array>> = {
  'verl.grpo': golden => spread(golden, grpoAdvantages(entriesOf(golden), { single: 'raw' })),
  'verl.drgrpo': golden => spread(golden, drGrpoAdvantages(entriesOf(golden), { single: 'raw' })),
  'verl.rloo': golden => spread(golden, rlooAdvantages(entriesOf(golden), { single: 'raw' })),
  'verl.opo': golden => spread(golden, opoAdvantages(entriesOf(golden), { single: 'raw' })),
  'verl.gpg': golden =>
    spread(golden, gpgAdvantages(entriesOf(golden), { alpha: 'single', single: 'raw' })),
  'verl.grpo_passk': golden => spread(golden, bestOfGroupAdvantages(entriesOf(golden))),
  'verl.reinforce_plus_plus': golden =>
    reinforcePlusPlusAdvantages(batchOf(golden), entriesOf(golden), { countEpsilon: 1e-8 }),
  'verl.reinforce_plus_plus_baseline': golden =>
    reinforcePlusPlusBaselineAdvantages(batchOf(golden), entriesOf(golden), verl),
}

function spread(golden: Case, advantages: readonly (number | undefined)[]): Float64Array {
  return spreadAdvantages(batchOf(golden), advantages)
}

function tokenAdvantageCase(golden: Case, name: string): ReturnType<Comparison> {
  if (name === 'verl.reinforce_plus_plus' && !golden.contiguous) {
    return { skipped: 'verl.reinforce_plus_plus resets returns at tool spans' }
  }
  const compute = tokenAdvantages[name]
  if (compute === undefined) throw new Error(`unknown token advantage ${name}`)
  return { name, ours: compute(golden), theirs: golden.tokenAdvantages[name]!, tolerance: exact }
}

function sequenceCase(golden: Case, name: string): Compared {
  const [, estimator, scale] = name.split('.') as [string, string, 'group' | 'batch' | 'none']
  const options = { scale, epsilon: 1e-8, single: 'raw' } as const
  const compute = { grpo: grpoAdvantages, rloo: rlooAdvantages }[estimator]
  if (compute === undefined) throw new Error(`unknown sequence advantage ${name}`)
  const ours = compute(entriesOf(golden), options).map(advantage => advantage ?? Number.NaN)
  return { name, ours, theirs: golden.sequenceAdvantages[name]!, tolerance: exact }
}

function policyTokens(golden: Case, advantages: Float64Array): PolicyTokens {
  return {
    ...batchOf(golden),
    logprobs: Float64Array.from(golden.logp),
    oldLogprobs: Float64Array.from(golden.oldLogp),
    refLogprobs: Float64Array.from(golden.refLogp),
    entropies: Float64Array.from(golden.entropy),
    advantages,
  }
}

function aggregationOf(name: string, columns: number): Aggregation {
  switch (name) {
    case 'token-mean':
      return { kind: 'token-mean' }
    case 'seq-mean-token-sum':
      return { kind: 'sequence-mean-token-sum' }
    case 'seq-mean-token-mean':
      return { kind: 'sequence-mean-token-mean', countEpsilon: 1e-8 }
    case 'seq-mean-token-sum-norm':
      return { kind: 'constant', divisor: columns }
    default:
      throw new Error(`unknown aggregation ${name}`)
  }
}

function verlLoss(golden: Case, key: string): LossResult {
  const [name, aggregationName, low, high] = key.split('|') as [string, string, string, string]
  const advantages = Float64Array.from(golden.tokenAdvantages['verl.grpo']!)
  const tokens = policyTokens(golden, advantages)
  const clip = { low: Number(low), high: Number(high) }
  const aggregation = aggregationOf(aggregationName, golden.shape[1])
  // These three aggregate in their own way in verl, whatever it is told.
  const own: Aggregation = { kind: 'sequence-mean-token-mean', countEpsilon: 1e-8 }
  switch (name) {
    case 'verl.vanilla':
      return ppoLoss(tokens, { ...clip, aggregation, dual: 3 })
    case 'verl.gspo':
      return gspoLoss(tokens, { ...clip, aggregation: own })
    case 'verl.sapo':
      return sapoLoss(tokens, { aggregation: own, positive: 1, negative: 1.05 })
    case 'verl.gpg':
      return gpgLoss(tokens, { aggregation })
    case 'verl.geo_mean':
      return gmpoLoss(tokens, { ...clip, aggregation: own, countEpsilon: 1e-8 })
    case 'verl.cispo':
      return cispoLoss(tokens, { ...clip, aggregation })
    default:
      throw new Error(`unknown loss ${key}`)
  }
}

function twinkleLoss(golden: Case, key: string): LossResult {
  const [name, ...pairs] = key.split('|')
  const given = Object.fromEntries(pairs.map(pair => pair.split('='))) as Record<string, string>
  const advantages = golden.sequenceAdvantages['twinkle.grpo.group']!
  const tokens = policyTokens(golden, spread(golden, advantages))
  const beta = Number(given.beta)
  const common = {
    entropy: Number(given.entropy),
    ...(beta > 0 ? { kl: { coefficient: beta } } : {}),
  }
  const clip = { low: 0.2, high: given.high === 'None' ? 0.2 : Number(given.high) }
  switch (name) {
    case 'twinkle.grpo':
      return grpoLoss(tokens, { ...common, ...clip })
    case 'twinkle.gspo':
      return gspoLoss(tokens, { ...common, ...clip })
    case 'twinkle.sapo':
      return sapoLoss(tokens, { ...common, positive: 1, negative: 1 })
    case 'twinkle.cispo':
      // Twinkle's clamp has no lower side and does not read epsilon_high.
      return cispoLoss(tokens, { ...common, low: Number.POSITIVE_INFINITY, high: 0.2 })
    case 'twinkle.bnpo':
      return bnpoLoss(tokens, { ...common, ...clip })
    case 'twinkle.drgrpo':
      return drGrpoLoss(tokens, { ...common, ...clip, length: 64 })
    default:
      throw new Error(`unknown loss ${key}`)
  }
}

function lossCases(golden: Case, key: string): Comparison[] {
  const theirs = golden.losses[key]!
  const compute = () => (key.startsWith('verl.') ? verlLoss : twinkleLoss)(golden, key)
  const compared =
    (part: string, list: readonly number[], ours: (result: LossResult) => ArrayLike<number>) =>
    () => ({
      name: `${key} ${part}`,
      ours: ours(compute()),
      theirs: list,
      tolerance: exact,
    })
  const { gradEntropy } = theirs
  return [
    compared('loss', [theirs.loss], result => [result.loss]),
    compared('gradient', theirs.grad, result => result.gradient),
    ...(gradEntropy
      ? [compared('entropy gradient', gradEntropy, result => result.entropyGradient ?? [])]
      : []),
    ...(theirs.metrics ? clipCases(golden, { key, metrics: theirs.metrics, compute }) : []),
  ]
}

/** verl's clip fractions, where they count the tokens whose loss was in fact clipped. */
function clipCases(
  golden: Case,
  {
    key,
    metrics,
    compute,
  }: { key: string; metrics: Readonly<Record<string, number>>; compute: () => LossResult },
): Comparison[] {
  const fraction = metrics['actor/pg_clipfrac']
  if (fraction === undefined) return []
  if (key.startsWith('verl.geo_mean')) {
    return [
      () => ({ skipped: 'clip fractions of verl.geo_mean count tokens that were not clipped' }),
    ]
  }
  return [
    () => {
      const { low, high, dual } = compute().clipped
      const change = policyMetrics(
        policyTokens(golden, new Float64Array(golden.mask.length)),
      )?.change
      return {
        name: `${key} clip fractions`,
        ours: [low + high, dual, -(change?.meanDifference ?? Number.NaN)],
        theirs: [fraction, metrics['actor/pg_clipfrac_lower']!, metrics['actor/ppo_kl']!],
        tolerance: single,
      }
    },
  ]
}

function metricCase(golden: Case, key: string): ReturnType<Comparison> {
  const [name, temperatureText] = key.split('|T=') as [string, string]
  const temperature = Number(temperatureText)
  if (temperature !== 0 && temperature !== 1) {
    return { skipped: `Twinkle's metrics at temperature ${temperature} scale log-probabilities` }
  }
  const clips = ({ grpo: 'token', gspo: 'sequence', cispo: 'weight' } as const)[name]
  if (clips === undefined) throw new Error(`unknown metrics ${key}`)
  const advantages = spread(golden, golden.sequenceAdvantages['twinkle.grpo.group']!)
  const settings = { low: 0.2, high: 0.28, clips, temperature }
  const metrics = policyMetrics(policyTokens(golden, advantages), settings)!
  const change = metrics.change!
  const clipped = change.clipped!
  const ours: Readonly<Record<string, number>> = {
    'train/policy_confidence': metrics.confidence,
    'train/mean_new_logp': metrics.meanLogprob,
    'train/mean_old_logp': change.meanOldLogprob,
    'train/logp_diff_mean': change.meanDifference,
    'train/approx_kl': change.kl,
    'train/token_kl_max': change.maximumKl,
    'train/token_ratio_max': change.maximumRatio,
    'train/entropy': metrics.entropy!,
    'train/clip_ratio_low': clipped.low,
    'train/clip_ratio_high': clipped.high,
    'train/clip_ratio': clipped.low + clipped.high,
  }
  const names = Object.keys(golden.metrics[key]!)
  return {
    name: `metrics ${key}`,
    ours: names.map(metric => ours[metric] ?? Number.NaN),
    theirs: names.map(metric => golden.metrics[key]![metric]!),
    tolerance: single,
  }
}

const kl: Readonly<Record<string, (d: number) => number>> = {
  kl: d => klTerm('k1', d).value,
  abs: d => klTerm('absolute', d).value,
  mse: d => klTerm('k2', d).value,
  low_var_kl: d => boundedK3(d).value,
}

function klCase(golden: Case, name: string): Compared {
  const estimate = kl[name]
  if (estimate === undefined) throw new Error(`unknown estimator ${name}`)
  const ours = golden.logp.map((logp, token) => estimate(logp - golden.refLogp[token]!))
  return { name: `kl ${name}`, ours, theirs: golden.kl[name]!, tolerance: exact }
}
