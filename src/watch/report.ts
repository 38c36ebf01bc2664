import type { Group, Unscored, Weighted } from '../core/group.ts'
import type { Trajectory } from '../core/trajectory.ts'
import type { Tree } from '../core/tree.ts'
import { attemptMeans, type Ending } from '../math/attempts.ts'
import { type Interval, wilsonInterval } from '../math/intervals.ts'
import { deviation, mean, quantile } from '../math/statistics.ts'
import { type CondenseReport, openCondenseReport } from './condense-report.ts'
import { type Counter, openCounter, openSlowest, type Slow } from './tallies.ts'
import {
  addFork,
  type ForkCost,
  figuresOf,
  type TrajectoryFigures,
  type TreeFigures,
} from './tree-figures.ts'
import { openVersionTally, type VersionReport } from './version-tally.ts'

/** A number over many trajectories. */
export interface Spread {
  readonly mean: number
  readonly median: number
  readonly p95: number
  readonly most: number
}

/** How the calls of one tool went. */
export interface ToolReport {
  readonly calls: number
  /** By problem: `unknown-tool`, `malformed-call`, `invalid-arguments`, `thrown`, `timeout`. */
  readonly problems: Readonly<Record<string, number>>
  readonly seconds: number
}

/** The results of a run in numbers. */
export interface Report {
  readonly groups: number
  readonly trees: number
  readonly trajectories: number
  /** Share of the scored trajectories with a reward of `successAt` or more. */
  readonly success: {
    readonly rate: number
    readonly interval: Interval
    readonly at: number
  } | null
  readonly reward: {
    readonly mean: number
    readonly deviation: number
    readonly parts: Readonly<Record<string, { readonly mean: number; readonly weight: number }>>
  } | null
  /** Groups whose members do not all have the same reward: those that teach. */
  readonly groupsWithContrast: number
  readonly outcomes: Readonly<Record<string, number>>
  /** Failures by boundary and message, the most frequent first. */
  readonly failures: readonly {
    readonly where: string
    readonly message: string
    readonly count: number
  }[]
  /** Trajectories that filters dropped, by filter. */
  readonly filters: Readonly<Record<string, number>>
  readonly tools: Readonly<Record<string, ToolReport>>
  /** What else happened, by kind: guards, rewrites, condensing. */
  readonly events: Readonly<Record<string, number>>
  readonly turns: Spread
  readonly tokens: {
    readonly sampled: number
    readonly prompt: number
    /** Prompt tokens that were in a server's prefix cache. */
    readonly cached: number
    readonly perTrajectory: Spread
  }
  /** Where the time of all attempts went, in seconds. */
  readonly seconds: Readonly<Record<'policy' | 'tools' | 'environment' | 'reward', number>>
  readonly slowest: readonly Slow[]
  readonly versions: VersionReport
  readonly fidelity: Readonly<Record<string, number>>
  /** The cost of conversations that agents rewrote, by cause. */
  readonly forks: Readonly<Record<string, ForkCost>>
  /** Sampled tokens whose log-probabilities are not tempered, by basis. */
  readonly untempered: Readonly<Record<string, number>>
  /** What condensing did, where contexts were condensed. */
  readonly condensing?: CondenseReport
}

/** Adds up groups; nothing but numbers is kept of them. */
export interface ReportBuilder {
  /** Adds a group; its trees are looked into where nobody has counted them. */
  add(group: Group): void
  report(): Report
}

/** Opens a report. @default successAt 1 */
export function openReport({ successAt = 1 }: { readonly successAt?: number } = {}): ReportBuilder {
  const tally = openTally(successAt)
  const condensing = openCondenseReport()
  return {
    add(group) {
      tally.groups++
      const { members, unscored } = group
      const trees = new Map<Tree, TreeFigures>()
      for (const { tree } of members) if (!trees.has(tree)) trees.set(tree, figuresOf(tree))
      for (const { tree } of unscored) if (!trees.has(tree)) trees.set(tree, figuresOf(tree))
      tally.trees += trees.size
      for (const { versions, untempered } of trees.values()) {
        tally.sampled += tally.versions.add(versions, group.step)
        for (const [problem, count] of untempered) tally.untempered.add(problem, count)
      }
      const countedOf = ({ tree, trajectory: { id } }: Weighted | Unscored): TrajectoryFigures =>
        trees.get(tree)!.trajectories.find(each => each.id === id)!
      condensing.add(group, member => countedOf(member).condensing)
      for (const member of members) addScored(tally, member, countedOf(member))
      tally.attempts.push(...attemptMeans(members.map(each => toEnding(each, successAt))))
      for (const member of unscored) addUnscored(tally, member, countedOf(member))
      const [first, ...others] = group.members
      if (others.some(({ reward }) => reward.total !== first!.reward.total)) tally.contrast++
    },
    report() {
      const condensed = condensing.report()
      return { ...toReport(tally), ...(condensed && { condensing: condensed }) }
    },
  }
}

function openTally(successAt: number) {
  return {
    successAt,
    groups: 0,
    trees: 0,
    contrast: 0,
    /** Per tree: the share of its endings that succeeded. */
    attempts: [] as number[],
    rewards: [] as number[],
    parts: new Map<string, { scores: number[]; weight: number }>(),
    outcomes: openCounter(),
    failures: openCounter(),
    filters: openCounter(),
    tools: new Map<string, { calls: number; problems: Counter; seconds: number }>(),
    events: openCounter(),
    forks: new Map<string, ForkCost>(),
    turns: [] as number[],
    lengths: [] as number[],
    sampled: 0,
    prompt: 0,
    cached: 0,
    seconds: { policy: 0, tools: 0, environment: 0, reward: 0 },
    slowest: openSlowest(10),
    versions: openVersionTally(),
    fidelity: openCounter(),
    untempered: openCounter(),
  }
}

type Tally = ReturnType<typeof openTally>

function addScored(
  tally: Tally,
  { trajectory, reward, dropped }: Weighted,
  counted: TrajectoryFigures,
): void {
  const { outcome } = trajectory
  tally.outcomes.add(outcome.kind === 'truncated' ? `truncated by ${outcome.limit}` : outcome.kind)
  tally.rewards.push(reward.total)
  for (const { name, score, weight } of reward.parts) {
    const part = tally.parts.get(name) ?? { scores: [], weight }
    tally.parts.set(name, part)
    part.scores.push(score)
    part.weight = weight
  }
  if (dropped) tally.filters.add(dropped.filter)
  addTrajectory(tally, trajectory, counted)
}

/** Whether an ending succeeded, as one of its tree. */
function toEnding({ tree, trajectory, reward }: Weighted, successAt: number): Ending {
  const value = Number(reward.total >= successAt - 1e-9)
  return { tree, share: trajectory.share, value }
}

function addUnscored(
  tally: Tally,
  { trajectory, outcome }: Unscored,
  counted: TrajectoryFigures,
): void {
  const where = outcome.kind === 'failed' ? `failed in ${outcome.boundary}` : 'aborted'
  tally.outcomes.add(where)
  const message = outcome.kind === 'failed' ? outcome.message : outcome.by
  tally.failures.add(JSON.stringify([where, generalise(message)]))
  addTrajectory(tally, trajectory, counted)
}

/** A failure's message without numbers and ids, so that equal failures are counted together. */
function generalise(message: string): string {
  return message.replace(/\d+(?!\d*\)$)/g, 'N').slice(0, 200)
}

function addTrajectory(
  tally: Tally,
  { usage, volatile, fidelity, id }: Trajectory,
  { turns, tools, events, forks }: TrajectoryFigures,
): void {
  const { seconds, cached } = volatile
  tally.turns.push(turns)
  tally.lengths.push(usage.sampled)
  tally.prompt += usage.prompt
  tally.cached += cached
  for (const lane of ['policy', 'tools', 'environment', 'reward'] as const) {
    tally.seconds[lane] += seconds[lane]
  }
  for (const { tool, calls, seconds: took, problems } of tools) {
    const entry = tally.tools.get(tool) ?? { calls: 0, problems: openCounter(), seconds: 0 }
    entry.calls += calls
    entry.seconds += took
    for (const [problem, count] of problems) entry.problems.add(problem, count)
    tally.tools.set(tool, entry)
  }
  for (const [kind, count] of events) tally.events.add(kind, count)
  for (const [cause, cost] of forks) addFork(tally.forks, cause, cost)
  tally.fidelity.add(fidelity.kind)
  const total = seconds.policy + seconds.tools + seconds.environment + seconds.reward
  tally.slowest.add({ trajectory: id, seconds: total, turns, sampled: usage.sampled })
}

function toReport(tally: Tally): Report {
  const { rewards, attempts, successAt } = tally
  const successes = attempts.reduce((sum, share) => sum + share, 0)
  return {
    groups: tally.groups,
    trees: tally.trees,
    trajectories: tally.lengths.length,
    success:
      rewards.length === 0 || isShownOnly(tally)
        ? null
        : {
            rate: successes / attempts.length,
            interval: wilsonInterval(successes, attempts.length),
            at: successAt,
          },
    reward:
      rewards.length === 0
        ? null
        : {
            mean: mean(inOrder(rewards)),
            deviation: deviation(inOrder(rewards)),
            parts: partsOf(tally),
          },
    groupsWithContrast: tally.contrast,
    outcomes: tally.outcomes.record(),
    failures: tally.failures.entries().map(([key, count]) => {
      const [where, message] = JSON.parse(key) as [string, string]
      return { where, message, count }
    }),
    filters: tally.filters.record(),
    tools: Object.fromEntries(
      [...tally.tools]
        .sort(byName)
        .map(([name, { problems, ...rest }]) => [
          name || '(none)',
          { ...rest, problems: problems.record() },
        ]),
    ),
    events: tally.events.record(),
    forks: Object.fromEntries(tally.forks),
    turns: spreadOf(tally.turns),
    tokens: {
      sampled: tally.sampled,
      prompt: tally.prompt,
      cached: tally.cached,
      perTrajectory: spreadOf(tally.lengths),
    },
    seconds: tally.seconds,
    slowest: tally.slowest.list(),
    versions: tally.versions.report(),
    untempered: tally.untempered.record(),
    fidelity: tally.fidelity.record(),
  }
}

/** Whether all trajectories are demonstrations, imported without rewards: nothing was solved or failed. */
function isShownOnly({ parts }: Tally): boolean {
  return parts.size === 1 && parts.has('shown')
}

function partsOf({ parts }: Tally) {
  return Object.fromEntries(
    [...parts].map(([name, { scores, weight }]) => [name, { mean: mean(inOrder(scores)), weight }]),
  )
}

/** Sorted, so that sums are equal to the last bit in whatever order groups ended. */
function inOrder(values: readonly number[]): readonly number[] {
  return values.toSorted((one, other) => one - other)
}

function byName([one]: readonly [string, unknown], [other]: readonly [string, unknown]): number {
  return one < other ? -1 : 1
}

function spreadOf(values: readonly number[]): Spread {
  if (values.length === 0) return { mean: 0, median: 0, p95: 0, most: 0 }
  return {
    mean: mean(values),
    median: quantile(values, 0.5),
    p95: quantile(values, 0.95),
    most: quantile(values, 1),
  }
}
