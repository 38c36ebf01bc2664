import { type ImportanceSettings, importanceWeights, stalenessWeights } from '../math/importance.ts'
import type { TokenPaths } from '../math/paths.ts'
import { findPart, type PartShape } from '../names/part-options.ts'
import { SettingError } from '../names/setting-error.ts'

/** How what was sampled otherwise than it learns is weighed. */
export interface OffPolicy {
  /** Bounded ratios between the weights before learning and those that sampled. */
  readonly ratios: readonly Partial<ImportanceSettings>[]
  /** Weights by age in versions. */
  readonly staleness?: { readonly decay: number; readonly maximumLag: number }
}

interface WeightShape extends PartShape {
  readonly about: string
  /** What a ratio's weight is bounded by; `undefined` where age decides. */
  readonly settings: Partial<ImportanceSettings> | undefined
}

const bounds = { low: 'amount', high: 'amount', veto: 'amount' } as const

/** The importance weights that can be named; several multiply. */
export const importanceParts: Readonly<Record<string, WeightShape>> = {
  token: {
    about: 'Each token’s ratio, held below `high`.',
    options: { high: 'amount', veto: 'amount' },
    settings: { level: 'token', mode: 'truncate', high: 2 },
  },
  sequence: {
    about: 'The product of a trajectory’s ratios, held below `high`.',
    options: { high: 'amount', veto: 'amount' },
    settings: { level: 'sequence', mode: 'truncate', high: 2 },
  },
  mask: {
    about: 'Each token’s ratio; 0 outside of `low` to `high`.',
    options: bounds,
    settings: { level: 'token', mode: 'mask', low: 0.5, high: 2 },
  },
  icepop: {
    about: 'The same within IcePop’s wider bounds.',
    options: bounds,
    settings: { level: 'token', mode: 'mask', low: 0.5, high: 5 },
  },
  reject: {
    about:
      'The geometric mean of a trajectory’s ratios; the whole is left out outside of `low` to `high`.',
    options: bounds,
    settings: { level: 'geometric', mode: 'mask', low: 0.5, high: 2 },
  },
  staleness: {
    about: 'decay to the power of a token’s age in versions; 0 beyond `lag`.',
    options: { decay: 'share', lag: 'whole' },
    settings: undefined,
  },
}

/** Reads `--importance`, in which several multiply. */
export function readImportance(names: readonly string[]): OffPolicy {
  const ratios: Partial<ImportanceSettings>[] = []
  let staleness: OffPolicy['staleness']
  for (const text of names) {
    const { factory, values } = findPart('importance weight', text, importanceParts)
    const given = values as Readonly<Record<string, number>>
    if (factory.settings) ratios.push({ ...factory.settings, ...given })
    else {
      const { decay = 0.9, lag = Number.POSITIVE_INFINITY } = given
      staleness = { decay, maximumLag: lag }
    }
  }
  return { ratios, ...(staleness && { staleness }) }
}

/** Refuses weights whose ratio the loss would count a second time. */
export function checkImportance(
  names: readonly string[],
  proximal: 'recorded' | 'recompute' | undefined,
): void {
  const { ratios } = readImportance(names)
  if (ratios.length === 0 || proximal === 'recompute') return
  throw new SettingError(
    `--importance ${names.join(' ')} needs --proximal recompute: ratios that start from recorded ` +
      'log-probabilities hold the same difference already',
  )
}

/** What is known of the tokens of rows laid end to end. */
export interface SampledTokens {
  readonly recorded: Float64Array
  /** Under the weights before learning; needed by ratios. */
  readonly proximal: Float64Array | undefined
  /** The version that sampled each. */
  readonly versions: Float64Array
  readonly current: number
}

/** Importance weights of all entries of paths, and the share of them that a bound changed or rejected. */
export function importanceOf(
  paths: TokenPaths,
  { ratios, staleness }: OffPolicy,
  { recorded, proximal, versions, current }: SampledTokens,
): { readonly weights: Float64Array; readonly bounded: number } {
  const weights = new Float64Array(paths.tokens.length).fill(1)
  const at = (values: Float64Array): Float64Array =>
    Float64Array.from(paths.tokens, token => values[token]!)
  let bounded = 0
  for (const settings of ratios) {
    if (!proximal) throw new Error('importance weights need log-probabilities of before learning')
    const engines = { ...paths, rolloutLogprobs: at(recorded), trainerLogprobs: at(proximal) }
    const found = importanceWeights(engines, settings)
    found.weights.forEach((weight, entry) => {
      weights[entry]! *= weight
    })
    bounded = Math.max(bounded, found.bounded)
  }
  if (staleness) {
    stalenessWeights(at(versions), current, staleness).forEach((weight, entry) => {
      weights[entry]! *= weight
    })
  }
  return { weights, bounded }
}
