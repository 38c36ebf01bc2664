import type { Group } from '../../base/core/group.ts'
import { untemperedTokens } from '../../base/core/tree.ts'
import { isUnscored } from '../rows/row-record.ts'
import type { LossReport } from './lost.ts'

/** Data of a run that a format may or may not have a field for. */
export type Feature =
  | 'tokens'
  | 'advantages'
  | 'rewards'
  | 'reward parts'
  | 'messages'
  | 'tools'
  | 'outcomes'
  | 'reports'
  | 'sampling'
  | 'fidelity'
  | 'version ranges'
  | 'basis'
  | 'entropies'
  | 'candidates'
  | 'other policies'
  | 'routed experts'
  | 'images'

/** What the neutral formats carry: everything except entropies and candidates of tokens. */
export const neutralFeatures: readonly Feature[] = [
  'tokens',
  'advantages',
  'rewards',
  'reward parts',
  'messages',
  'tools',
  'outcomes',
  'reports',
  'sampling',
  'fidelity',
  'version ranges',
  'basis',
  'other policies',
  'routed experts',
  'images',
]

const words: Readonly<Record<Feature, string>> = {
  tokens: 'tokens and log-probabilities of trajectories',
  advantages: 'advantages of trajectories',
  rewards: 'rewards of trajectories',
  'reward parts': 'named parts of rewards',
  messages: 'messages of trajectories',
  tools: 'tools of trajectories',
  outcomes: 'outcomes of trajectories: which limit, which failure',
  reports: 'reports of environments',
  sampling: 'temperatures, seeds and other sampling of trajectories',
  fidelity: 'fidelity certificates of trajectories',
  'version ranges': 'samples whose policy version is only known as a range',
  basis: 'tokens whose log-probabilities are not the tempered ones, and what they are instead',
  entropies: 'entropies of tokens',
  candidates: 'candidates of tokens with their log-probabilities',
  'other policies': 'log-probabilities of tokens under a reference or a teacher',
  'routed experts': 'tokens with the experts that served them',
  images: 'images that the policy was shown',
}

/** Counts what a group has of the features that a format does not carry. */
export function countUncarried(group: Group, carries: readonly Feature[], lost: LossReport): void {
  for (const [feature, count] of Object.entries(countFeatures(group))) {
    if (!carries.includes(feature as Feature)) lost.add(words[feature as Feature], count)
  }
}

function countFeatures(group: Group): Readonly<Record<Feature, number>> {
  const all = [...group.members, ...group.unscored]
  const scored = group.members
  const trees = [...new Set(all.map(({ tree }) => tree))]
  const segments = trees.flatMap(({ nodes }) => nodes).map(({ segment }) => segment)
  const sampled = segments.filter(segment => segment.origin === 'sampled')
  return {
    tokens: all.filter(({ trajectory }) => trajectory.turns.length > 0).length,
    advantages: scored.filter(({ advantage }) => advantage !== null).length,
    rewards: scored.length,
    'reward parts': scored.filter(({ reward }) => reward.parts.length > 0).length,
    messages: all.filter(({ trajectory }) => trajectory.messages.length > 0).length,
    tools: all.filter(({ tree }) => tree.tools.length > 0).length,
    outcomes: all.filter(
      member => isUnscored(member) || member.trajectory.outcome.kind === 'truncated',
    ).length,
    reports: all.filter(({ trajectory }) => trajectory.report !== undefined).length,
    sampling: all.length,
    fidelity: all.filter(({ trajectory }) => trajectory.fidelity.kind !== 'exact').length,
    'version ranges': sampled.filter(({ version }) => version.from !== version.to).length,
    basis: trees.flatMap(tree => [...untemperedTokens(tree).values()]).reduce(add, 0),
    entropies: sampled.reduce((sum, { entropies }) => sum + (entropies?.length ?? 0), 0),
    'other policies': sampled
      .flatMap(({ others = {} }) => Object.values(others).map(({ length }) => length))
      .reduce(add, 0),
    'routed experts': sampled.reduce(
      (sum, { ids, experts }) => sum + (experts ? ids.length : 0),
      0,
    ),
    images: segments.reduce((sum, { images = [] }) => sum + images.length, 0),
    candidates: sampled.reduce((sum, { top }) => sum + (top?.ids.length ?? 0), 0),
  }
}

const add = (sum: number, count: number): number => sum + count
