import type { Advantages, RewardedTrajectory } from './advantage.ts'
import { bestOfGroupAdvantages } from './advantages/best-of-group.ts'
import { gigpoAdvantages } from './advantages/gigpo.ts'
import { gpgAdvantages } from './advantages/gpg.ts'
import { drGrpoAdvantages, grpoAdvantages } from './advantages/grpo.ts'
import { opoAdvantages } from './advantages/opo.ts'
import {
  type ReinforceTokens,
  reinforcePlusPlusAdvantages,
  reinforcePlusPlusBaselineAdvantages,
} from './advantages/reinforce-plus-plus.ts'
import { rlooAdvantages } from './advantages/rloo.ts'
import { treeGrpoAdvantages } from './advantages/tree-grpo.ts'
import { type TreeNode, treeRlAdvantages } from './advantages/tree-rl.ts'
import { type RewardedTurn, turnLevelAdvantages } from './advantages/turn-level.ts'
import { type Aggregation, aggregationNames } from './aggregation.ts'
import type { LossResult, PolicyTokens } from './loss.ts'
import { cispoLoss } from './losses/cispo.ts'
import { gmpoLoss } from './losses/gmpo.ts'
import { gpgLoss } from './losses/gpg.ts'
import { gspoLoss } from './losses/gspo.ts'
import { bnpoLoss, drGrpoLoss, grpoLoss, ppoLoss } from './losses/ppo.ts'
import { sapoLoss } from './losses/sapo.ts'
import { checkNumber, checkWord, named } from './options.ts'

/** Options as a command line or a file gives them; the function they reach refuses unknown ones. */
export type NamedOptions = Readonly<Record<string, unknown>>

/** A policy loss chosen by name. */
export type PolicyLoss = (tokens: PolicyTokens, options?: NamedOptions) => LossResult

/** An advantage chosen by name, told apart by what it is computed from. */
export type AdvantageEstimator =
  | {
      readonly kind: 'trajectory'
      readonly compute: (
        entries: readonly RewardedTrajectory[],
        options?: NamedOptions,
      ) => Advantages
    }
  | {
      readonly kind: 'token'
      readonly compute: (
        tokens: ReinforceTokens,
        entries: readonly RewardedTrajectory[],
        options?: NamedOptions,
      ) => Float64Array
    }
  | {
      readonly kind: 'turn'
      readonly compute: (turns: readonly RewardedTurn[], options?: NamedOptions) => Advantages
    }
  | { readonly kind: 'node'; readonly compute: (nodes: readonly TreeNode[]) => Advantages }

/** The advantages there are, by the name a command line uses. */
export const advantageNames = [
  'grpo',
  'dr-grpo',
  'rloo',
  'opo',
  'gpg',
  'pass-at-k',
  'tree-grpo',
  'reinforce++',
  'reinforce++-baseline',
  'gigpo',
  'turn-level',
  'tree-rl',
] as const

/** One of them. */
export type AdvantageName = (typeof advantageNames)[number]

const advantages: Readonly<Record<AdvantageName, AdvantageEstimator>> = {
  grpo: { kind: 'trajectory', compute: grpoAdvantages },
  'dr-grpo': { kind: 'trajectory', compute: drGrpoAdvantages },
  rloo: { kind: 'trajectory', compute: rlooAdvantages },
  opo: { kind: 'trajectory', compute: opoAdvantages },
  gpg: { kind: 'trajectory', compute: gpgAdvantages },
  'pass-at-k': { kind: 'trajectory', compute: bestOfGroupAdvantages },
  'tree-grpo': { kind: 'trajectory', compute: treeGrpoAdvantages },
  'reinforce++': { kind: 'token', compute: reinforcePlusPlusAdvantages },
  'reinforce++-baseline': { kind: 'token', compute: reinforcePlusPlusBaselineAdvantages },
  gigpo: { kind: 'turn', compute: gigpoAdvantages },
  'turn-level': { kind: 'turn', compute: turnLevelAdvantages },
  'tree-rl': { kind: 'node', compute: treeRlAdvantages },
}

/** The advantage of that name; an unknown name is answered with the known ones. */
export function advantageNamed(name: string): AdvantageEstimator {
  return named('advantage', advantages, name)
}

/** The policy losses there are, by the name a command line uses. */
export const lossNames = [
  'ppo',
  'grpo',
  'dr-grpo',
  'bnpo',
  'gspo',
  'sapo',
  'cispo',
  'gmpo',
  'gpg',
] as const

/** One of them. */
export type LossName = (typeof lossNames)[number]

const losses: Readonly<Record<LossName, PolicyLoss>> = {
  ppo: ppoLoss,
  grpo: grpoLoss,
  'dr-grpo': drGrpoLoss,
  bnpo: bnpoLoss,
  gspo: gspoLoss,
  sapo: sapoLoss,
  cispo: cispoLoss,
  gmpo: gmpoLoss,
  gpg: gpgLoss,
}

/**
 * What a loss knows of a sequence: nothing (`token`: a sum over tokens with one divisor for all), its
 * length in a mean (`sequence-mean`), or one ratio for all its tokens (`sequence-ratio`).
 */
export type LossKind = 'token' | 'sequence-mean' | 'sequence-ratio'

const lossKinds: Readonly<Record<LossName, LossKind>> = {
  ppo: 'token',
  grpo: 'sequence-mean',
  'dr-grpo': 'token',
  bnpo: 'token',
  gspo: 'sequence-ratio',
  sapo: 'sequence-mean',
  cispo: 'token',
  gmpo: 'sequence-ratio',
  gpg: 'token',
}

/** The kind of a loss with its own aggregation. */
export function lossKind(name: string): LossKind {
  return named('loss', lossKinds, name)
}

/** The policy loss of that name; an unknown name is answered with the known ones. */
export function lossNamed(name: string): PolicyLoss {
  return named('loss', losses, name)
}

/**
 * An aggregation as a command line writes it: `token-mean`, `sequence-mean-token-sum:1024` (a length)
 * or `constant:4096` (its divisor).
 */
export function aggregationNamed(text: string): Aggregation {
  const [kind = '', given, ...rest] = text.split(':')
  checkWord('An aggregation', kind, aggregationNames)
  const number = given === undefined ? undefined : Number(given)
  if (number !== undefined)
    checkNumber(`The number of "${text}"`, number, { low: Number.MIN_VALUE })
  if (kind === 'constant' && number !== undefined && rest.length === 0) {
    return { kind, divisor: number }
  }
  if (kind === 'sequence-mean-token-sum' && number !== undefined && rest.length === 0) {
    return { kind, length: number }
  }
  if (kind === 'constant')
    throw new TypeError('The aggregation "constant" needs its divisor, as in constant:4096.')
  if (number !== undefined)
    throw new TypeError(`The aggregation "${kind}" takes no number, got "${text}".`)
  return { kind: kind as Exclude<Aggregation['kind'], 'constant'> }
}
