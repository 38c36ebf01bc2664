import type { Message, ToolDefinition } from '@espalier/text'
import type { Dropped } from '../../base/core/group.ts'
import type { Json } from '../../base/core/ids.ts'
import type { Outcome } from '../../base/core/outcome.ts'
import type { Finish, Sampling } from '../../base/core/policy.ts'
import type { Reward } from '../../base/core/reward.ts'
import type { CallRecord } from '../../base/core/tool.ts'
import type {
  Fidelity,
  TrajectoryEvent,
  Usage,
  View,
  Volatile,
} from '../../base/core/trajectory.ts'
import type { MemberRow } from './answers.ts'

/** A turn of a trajectory with what is known of its tokens. */
export interface TurnAnswer {
  /** How many messages came before its own. */
  readonly messages: number
  readonly finish: Finish
  readonly path: number
  /** Where its tokens lie on that path. */
  readonly start: number
  readonly end: number
  readonly version: readonly [number, number]
  readonly advantage: number | null
  readonly meanLogprob: number | null
  readonly reward?: number
  readonly anchor?: string
}

/** One of the token sequences that a trajectory went through; a rewrite starts the next. */
export interface PathAnswer {
  readonly tokens: number
  readonly sampled: number
  /** What rewrote the path before it, and why; absent on the first. */
  readonly rewrite?: { readonly by: string; readonly reason: string; readonly kept: number }
}

/** All that is known of one trajectory, without its tokens. */
export interface TrajectoryAnswer {
  readonly id: string
  readonly tree: string
  readonly group: string
  readonly task: { readonly id: string; readonly data: Json }
  /** Whose attempt this is, if attempts have several seats. */
  readonly seat?: string
  readonly step: number | null
  readonly members: readonly MemberRow[]
  readonly outcome: Outcome
  readonly reward: Reward | null
  readonly dropped: Dropped | null
  readonly advantage: number | null
  readonly weight: number
  readonly share: number
  readonly messages: readonly Message[]
  /** Images that they show, as data URLs by the reference in their place. */
  readonly images: Readonly<Record<string, string>>
  readonly turns: readonly TurnAnswer[]
  readonly views: readonly View[]
  readonly calls: readonly CallRecord[]
  readonly report: Json
  readonly fidelity: Fidelity
  readonly usage: Usage
  readonly events: readonly TrajectoryEvent[]
  readonly volatile: Volatile
  readonly paths: readonly PathAnswer[]
  readonly sampling: Sampling
  readonly seed: number
  readonly renderer: string
  readonly tools: readonly ToolDefinition[]
  /** Whether its tree has other endings. */
  readonly endings: number
}

/** A candidate for the next token. */
export interface Candidate {
  readonly id: number
  readonly text: string
  readonly logprob: number
}

/** An image whose tokens stand on a page, at `[start, end)` as the page counts: it may begin before and end behind it. */
export interface ImageRun {
  /** Its number on the path, from 1. */
  readonly number: number
  readonly start: number
  readonly end: number
  readonly width: number
  readonly height: number
}

/** Tokens of one path, column by column, from `offset` on. */
export interface TokenPage {
  readonly path: number
  readonly total: number
  readonly offset: number
  readonly ids: readonly number[]
  /** `null` without a tokenizer. */
  readonly texts: readonly (string | null)[]
  readonly controls: readonly boolean[]
  /** 0 prompt, 1 observed, 2 sampled. */
  readonly origins: readonly number[]
  readonly trained: readonly boolean[]
  readonly logprobs: readonly (number | null)[]
  readonly entropies: readonly (number | null)[]
  readonly advantages: readonly (number | null)[]
  readonly versions: readonly (readonly [number, number] | null)[]
  /** Where a rewrite carried a token over: its place on the path before. */
  readonly repeats: readonly boolean[]
  readonly top: readonly (readonly Candidate[] | null)[]
  readonly images: readonly ImageRun[]
}

/** A node of a tree: a run of tokens of one origin. */
export interface TreeNodeAnswer {
  readonly node: number
  readonly parent: readonly [node: number, offset: number]
  readonly origin: 'prompt' | 'observed' | 'sampled'
  readonly start: number
  readonly length: number
  readonly text: string
  readonly version?: readonly [number, number]
  readonly meanLogprob: number | null
  readonly meanEntropy: number | null
  readonly advantage: number | null
  readonly rewrite?: {
    readonly of: readonly [node: number, offset: number]
    readonly by: string
    readonly reason: string
  }
  /** Numbers of the endings whose paths go through it. */
  readonly endings: readonly number[]
}

/** Where several continuations begin at one place. */
export interface BranchAnswer {
  readonly node: number
  readonly offset: number
  /** Tokens before it. */
  readonly at: number
  readonly turn: number
  readonly width: number
  readonly why: string
  /** How each of them goes on. */
  readonly ways: readonly string[]
}

/** A tree with its endings. */
export interface TreeAnswer {
  readonly id: string
  readonly group: string
  readonly task: string
  readonly nodes: readonly TreeNodeAnswer[]
  readonly branches: readonly BranchAnswer[]
  readonly endings: readonly (MemberRow & {
    readonly end: readonly [node: number, offset: number]
    readonly share: number
    /** Nodes on its last path, and on paths that were rewritten. */
    readonly path: readonly number[]
    readonly replaced: readonly number[]
  })[]
}

/** One side of the place where two siblings part. */
export interface PartingSide {
  readonly id: string
  /** Undefined if the path ends there; with a log-probability if it was sampled and the policy reported one. */
  readonly token: {
    readonly id: number
    readonly text: string
    readonly logprob: number | null
  } | null
  readonly origin: string
  readonly entropy: number | null
  readonly top: readonly Candidate[]
  /** The tokens that follow. */
  readonly after: string
}

/** Where two siblings part. */
export interface PartingAnswer {
  /** Tokens they share; all of both if they are equal. */
  readonly shared: number
  readonly areEqual: boolean
  readonly before: string
  readonly sides: readonly [PartingSide, PartingSide]
}
