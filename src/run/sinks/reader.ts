import type { Message, ToolDefinition } from '@espalier/text'
import type { TrajectoryImportance } from '../../base/core/credit.ts'
import type { RowExperts } from '../../base/core/experts.ts'
import type { Dropped } from '../../base/core/group.ts'
import type { Json } from '../../base/core/ids.ts'
import type { Outcome } from '../../base/core/outcome.ts'
import type { Sampling } from '../../base/core/policy.ts'
import type { Reward } from '../../base/core/reward.ts'
import type { Run } from '../../base/core/row.ts'
import type { LogprobBasis, OtherLogprobs, Segment, VersionRange } from '../../base/core/segment.ts'
import type { Fidelity, Usage } from '../../base/core/trajectory.ts'
import type { Fields } from './fields.ts'

/** A run of tokens of one origin. */
export interface ReadSpan {
  readonly start: number
  readonly end: number
  readonly origin: Segment['origin']
  /** Of sampled tokens. */
  readonly version: VersionRange
}

/** One token sequence of a trajectory; a rewrite starts the next. */
export interface ReadPath {
  readonly ids: Int32Array
  /** NaN if there is none. */
  readonly logprobs: Float32Array
  readonly spans: readonly ReadSpan[]
  /** Under other policies, if they were asked; NaN if there is none. */
  readonly others?: OtherLogprobs
  /** What its trained tokens are worth, and to whom; absent if the file does not say. */
  readonly passages?: readonly Run<readonly ReadPassage[]>[]
  /** Which experts served its tokens, if the file says. */
  readonly experts?: RowExperts
  /** Importance weights of its trained tokens, if the file has them; NaN if it has none. */
  readonly importance?: Float64Array
  /** Whether `passages` name all who share a token, so that equal tokens are one only if they say so. */
  readonly namesAll?: boolean
}

/** What a trained token is worth to a trajectory through it. */
export interface ReadPassage {
  /** Absent: the trajectory whose path it is. */
  readonly trajectory?: string
  readonly advantage: number
  /** How much the token counts among the trajectory's own. */
  readonly share: number
}

/** A trajectory as read from a foreign file. */
export interface ReadTrajectory {
  readonly group: string
  readonly task: string
  readonly data: unknown
  readonly member: number
  /** The ids it had, if the file keeps them. */
  readonly tree?: string
  readonly id?: string
  readonly step?: number
  readonly seat?: string
  /** Empty if the file has messages only: they are encoded again. */
  readonly paths: readonly ReadPath[]
  readonly messages: readonly Message[]
  readonly tools: readonly ToolDefinition[]
  /** `null`: it never got one. */
  readonly reward: Reward | null
  readonly advantage: number | null
  readonly weight: number
  /** The importance weight of the whole trajectory, if the file weighs tokens. */
  readonly importance?: Pick<TrajectoryImportance, 'factor' | 'ratios'>
  readonly dropped: Dropped | null
  readonly outcome: Outcome
  readonly sampling: Sampling
  readonly seed: number
  readonly basis: LogprobBasis
  readonly fidelity: Fidelity
  readonly usage?: Usage
  readonly report?: Json
}

/** Reads a format back. */
export interface FormatReader {
  readonly name: string
  /** One object per line, one array of objects, or a Parquet table. */
  readonly kind: 'lines' | 'array' | 'table'
  /** Whether it only has messages, so that tokens have to be made anew. */
  readonly hasOnlyMessages?: boolean
  read(records: AsyncIterable<Fields>): AsyncGenerator<ReadTrajectory>
}

/** The values for what a format does not record. */
export const unknownParts = {
  tools: [] as readonly ToolDefinition[],
  messages: [] as readonly Message[],
  advantage: null,
  weight: 1,
  dropped: null,
  outcome: { kind: 'completed' },
  sampling: { temperature: 1, topP: 1, topK: 0, minP: 0 },
  seed: 0,
  basis: 'tempered',
  fidelity: { kind: 'exact', forks: [] },
} as const

/** A reward of one unnamed part. */
export function plainReward(total: number | null): Reward | null {
  return total === null ? null : { total, parts: [{ name: 'reward', score: total, weight: 1 }] }
}

/** The reward part of demonstrations, which have no reward of their own. */
const shownPart = 'shown'

/** The reward of demonstrations: 1, so that they are learned from. */
export const shownReward: Reward = {
  total: 1,
  parts: [{ name: shownPart, score: 1, weight: 1 }],
}

/** Named scores as a reward; a difference from the total becomes a part of its own. */
export function namedReward(
  total: number | null,
  scores: Readonly<Record<string, number>>,
): Reward | null {
  if (total === null) return null
  const entries = Object.entries(scores)
  if (entries.length === 0) return plainReward(total)
  const isSum = Math.abs(entries.reduce((sum, [, score]) => sum + score, 0) - total) < 1e-9
  // Files do not contain weights; if the scores do not sum to the total, they count as metrics.
  const parts = entries.map(([name, score]) => ({ name, score, weight: isSum ? 1 : 0 }))
  return { total, parts: isSum ? parts : [...parts, { name: 'total', score: total, weight: 1 }] }
}
