import type { Dropped } from '../../base/core/group.ts'
import type { Json } from '../../base/core/ids.ts'
import type { Outcome } from '../../base/core/outcome.ts'
import type { Reward } from '../../base/core/reward.ts'
import type { Fidelity, Volatile } from '../../base/core/trajectory.ts'

/** A run that the page can open. */
export interface RunEntry {
  /** Names it in links. */
  readonly name: string
  readonly kind: string
  readonly status: 'running' | 'stopped' | 'interrupted' | 'finished' | 'unreadable'
  readonly started?: string
  readonly environment?: string
  readonly policy?: string
  readonly result?: RunResult
  /** Where it came from: a folder, a dropped file, a fork of another run. */
  readonly origin: string
  /** Why it cannot be read, if it cannot. */
  readonly problem?: string
}

/** What came of a run, as its report says. */
export interface RunResult {
  /** Success before training, if it trained. */
  readonly before: number | null
  /** `null` if nothing was scored. */
  readonly success: number | null
  /** Trajectories that failed or were aborted, of all. */
  readonly failed: number
  readonly trajectories: number
}

/** What happened in a training run and why, in the words of its report. */
export interface VerdictAnswer {
  readonly isGood: boolean
  readonly text: string
}

/** How much of a run has been looked through so far. */
export interface Progress {
  /** Trees whose contents are known, of all that lie in the journal. */
  readonly looked: number
  readonly trees: number
  readonly groups: number
  readonly trajectories: number
  /** Rises whenever something was added. */
  readonly version: number
  /** Where and how the journal is damaged, in words. */
  readonly damage?: string
}

/** One worker of a cluster, as last reported. */
export interface WorkerRow {
  readonly id: string
  /** Its machine and process. */
  readonly name: string
  /** Attempts that it makes, of those that it can make at one time. */
  readonly running: number
  readonly concurrency: number
  /** Attempts that it made, and those that came after its lease was lost. */
  readonly done: number
  readonly refused: number
  readonly perMinute: number
  readonly tokensPerSecond: number
  /** Seconds between its last heartbeat and the report. */
  readonly silent: number
  readonly time?: string
  readonly isLeaving: boolean
  /** Whether it was there once and is no more. */
  readonly isGone: boolean
  /** Why it does not take part. */
  readonly refusal?: string
}

/** Something that looked wrong although nothing failed. */
export interface Warning {
  readonly sentinel: string
  readonly message: string
  readonly likely: string
  readonly time?: string
}

/** How well the policy did on held-out tasks at one step. */
export interface EvaluationPoint {
  readonly step: number
  readonly success: number
  readonly low: number
  readonly high: number
  readonly scored: number
  readonly meanReward: number
}

/** One number over the course of a run; `null` if it is not known. */
export interface Series {
  readonly name: string
  readonly values: readonly (number | null)[]
}

/** A chart: one or more series over the same places. */
export interface Chart {
  readonly name: string
  readonly title: string
  /** What the number is, for people who have not seen it before. */
  readonly about: string
  readonly form: 'share' | 'number' | 'count'
  readonly x: readonly number[]
  readonly series: readonly Series[]
}

/** The charts of a run and what their horizontal axis counts. */
export interface Curves {
  readonly axis: string
  readonly charts: readonly Chart[]
  readonly evaluations: readonly EvaluationPoint[]
}

/** The data of a run's page. */
export interface RunAnswer extends RunEntry {
  readonly folder: string
  readonly progress: Progress
  readonly finished?: string
  readonly reason?: string
  readonly config: Readonly<Record<string, Json>>
  readonly versions: Readonly<Record<string, string>>
  readonly successAt: number
  readonly warnings: readonly Warning[]
  readonly verdict?: VerdictAnswer
  /** Who makes its attempts, if a cluster does. */
  readonly workers: readonly WorkerRow[]
  /** The contents of `report.json`; null while the run goes on. */
  readonly report: Json
  /** Sums over what was looked at. */
  readonly sums: RunSums
  /** Whether token ids can be written as text, and with which model. */
  readonly model: { readonly name: string } | { readonly problem: string }
  /** Policies a fork can be continued with; the first is the run's own. */
  readonly policies: readonly string[]
  /** Whether this page can fork: a file that was sent to somebody cannot. */
  readonly canTry: boolean
}

/** Sums over a run's finished groups. Evaluations are apart. */
export interface RunSums {
  readonly groups: number
  readonly trajectories: number
  readonly scored: number
  readonly reward: number | null
  readonly success: { readonly rate: number; readonly low: number; readonly high: number } | null
  /** Groups of several scored members, and those of them whose rewards differ. */
  readonly compared: number
  readonly contrast: number
  readonly sampled: number
  readonly prompt: number
  readonly cached: number
  readonly seconds: Volatile['seconds']
  readonly outcomes: Readonly<Record<string, number>>
  /** How trajectories failed or were aborted, in words. */
  readonly failures: Readonly<Record<string, number>>
  readonly filters: Readonly<Record<string, number>>
  /** Mean reward of each seat, if attempts have several. */
  readonly seats: Readonly<Record<string, number>>
  readonly tools: Readonly<Record<string, { readonly calls: number; readonly problems: number }>>
  readonly fidelity: Readonly<Record<string, number>>
}

/** A row in the table of groups. */
export interface GroupRow {
  readonly id: string
  readonly task: string
  /** Whose attempts these are, if attempts have several seats. */
  readonly seat?: string
  readonly step: number | null
  /** Its place in the run's own order. */
  readonly order: number
  /** The beginning of what the task says, if it is known. */
  readonly opening: string
  /** Rewards of scored members in their order. */
  readonly rewards: readonly number[]
  readonly members: number
  readonly unscored: number
  readonly dropped: number
  readonly isEvaluation: boolean
  readonly mean: number | null
  /** The highest reward minus the lowest. */
  readonly spread: number | null
  readonly outcomes: readonly string[]
  /** Filters that dropped members, with their reasons. */
  readonly reasons: readonly string[]
  readonly tools: readonly string[]
  /** Means per trajectory. */
  readonly tokens: number | null
  readonly turns: number | null
  /** Whether its trajectories are in this file; only sent files leave some out. */
  readonly isLeftOut?: boolean
}

/** The values that the table of groups can be narrowed by, with how many groups have each. */
export interface Facets {
  readonly outcomes: readonly Facet[]
  readonly reasons: readonly Facet[]
  readonly tools: readonly Facet[]
  readonly steps: { readonly low: number; readonly high: number } | null
  readonly rewards: { readonly low: number; readonly high: number } | null
  readonly evaluations: number
}

/** A value and how many groups have it. */
export interface Facet {
  readonly value: string
  readonly count: number
}

/** A page of the table of groups. */
export interface GroupPage {
  readonly total: number
  readonly all: number
  readonly offset: number
  readonly rows: readonly GroupRow[]
  /** Trees that were searched for the text, of all; equal when it is done. */
  readonly searched?: { readonly looked: number; readonly trees: number }
}

/** A member of a group, in a line. */
export interface MemberRow {
  readonly id: string
  readonly tree: string
  readonly reward: Reward | null
  readonly advantage: number | null
  readonly weight: number
  readonly dropped: Dropped | null
  readonly outcome: Outcome
  readonly turns: number
  readonly sampled: number
  readonly seconds: number
  readonly calls: readonly string[]
  readonly fidelity: Fidelity['kind']
  /** The last thing the policy said. */
  readonly answer: string
  readonly isCondensed: boolean
  /** How many endings its tree has. */
  readonly endings: number
}

/** A group with its members. */
export interface GroupAnswer {
  readonly row: GroupRow
  readonly data: Json
  readonly members: readonly MemberRow[]
  readonly previous: string | null
  readonly next: string | null
}

/** One task in a comparison. */
export interface PairRow {
  readonly task: string
  readonly before: PairSide
  readonly after: PairSide
  readonly change: 'gained' | 'lost' | 'same'
  readonly difference: number
}

/** The result of one side of a comparison on a task. */
export interface PairSide {
  readonly success: number
  readonly reward: number
  readonly tokens: number
  readonly attempts: number
  readonly group: string
}

/** A mean difference over tasks with the bounds that hold it at 95 %. */
export interface DifferenceAnswer {
  readonly before: number
  readonly after: number
  readonly difference: number
  readonly low: number
  readonly high: number
}

/** A side of a comparison: a run, or what it did at one evaluation. */
export interface SideAnswer {
  readonly run: string
  readonly step: number | null
  readonly title: string
}

/** Two runs or two checkpoints, task by task, those that changed places first. */
export interface ComparisonAnswer {
  readonly before: SideAnswer
  readonly after: SideAnswer
  readonly tasks: number
  readonly unpaired: number
  readonly success: DifferenceAnswer
  readonly reward: DifferenceAnswer
  readonly tokens: DifferenceAnswer
  readonly gained: number
  readonly lost: number
  readonly total: number
  readonly offset: number
  readonly pairs: readonly PairRow[]
}

/** A fork that was asked for. */
export interface TryRequest {
  readonly id: string
  /** A turn (`3`) or a token (`t512`). */
  readonly at: string
  readonly samples: number
  readonly edit?: string
  readonly policy?: string
}

/** What became of it. */
export type TryAnswer =
  | { readonly kind: 'working'; readonly seconds: number; readonly lines: readonly string[] }
  | { readonly kind: 'failed'; readonly problem: string }
  | {
      readonly kind: 'done'
      readonly run: string
      readonly group: string
      readonly value: {
        readonly mean: number
        readonly low: number
        readonly high: number
        readonly samples: number
      } | null
      readonly before: number | null
      readonly given: number
      readonly turn: number
    }

/** A file that was dropped on the page. */
export interface ImportAnswer {
  readonly run: string
  readonly format: string
  readonly trajectories: number
}
