import type { Group } from '../../base/core/group.ts'
import { attemptMeans, succeeds } from '../../base/math/attempts.ts'
import { type Cluster, clusteredInterval } from '../../base/math/bounds/clustered.ts'
import type { Interval } from '../../base/math/intervals.ts'
import { deviation, mean, quantile } from '../../base/math/statistics.ts'
import { type CondenseReport, makeCondenseReport } from './condense-report.ts'
import { type GroupFigures, groupFiguresOf } from './group-figures.ts'
import { type Counter, makeCounter, makeSlowest, type Slow } from './tallies.ts'
import { addFork, type ForkCost, type ToolFigures } from './tree-figures.ts'
import { makeVersionTally, type VersionReport } from './version-tally.ts'

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
  /** What condensing did, if contexts were condensed. */
  readonly condensing?: CondenseReport
}

/** Adds up groups; nothing but numbers is kept of them. */
export interface ReportBuilder {
  /** Adds a group; its trees are looked into if nobody has counted them. */
  add(group: Group): void
  report(): Report
}

/** Opens a report. @default successAt 1 */
export function makeReport({ successAt = 1 }: { readonly successAt?: number } = {}): ReportBuilder {
  const tally = makeTally(successAt)
  const condensing = makeCondenseReport()
  return {
    add(group) {
      const figures = groupFiguresOf(group)
      addGroup(tally, figures, group.step)
      condensing.add(figures)
    },
    report() {
      const condensed = condensing.report()
      return { ...toReport(tally), ...(condensed && { condensing: condensed }) }
    },
  }
}

function makeTally(successAt: number) {
  return {
    successAt,
    groups: 0,
    trees: 0,
    contrast: 0,
    /** Per group with a reward: the share of its attempts that succeeded. */
    attempts: [] as Cluster[],
    rewards: [] as number[],
    parts: new Map<string, { scores: number[]; weight: number }>(),
    outcomes: makeCounter(),
    failures: makeCounter(),
    filters: makeCounter(),
    tools: new Map<string, { calls: number; problems: Counter; seconds: number }>(),
    events: makeCounter(),
    forks: new Map<string, ForkCost>(),
    turns: [] as number[],
    lengths: [] as number[],
    sampled: 0,
    prompt: 0,
    cached: 0,
    seconds: { policy: 0, tools: 0, environment: 0, reward: 0 },
    slowest: makeSlowest(),
    versions: makeVersionTally(),
    fidelity: makeCounter(),
    untempered: makeCounter(),
  }
}

type Tally = ReturnType<typeof makeTally>

function addGroup(tally: Tally, figures: GroupFigures, step: number | undefined): void {
  const { endings, versions, seconds } = figures
  tally.groups++
  tally.trees += versions.length
  for (const own of versions) tally.sampled += tally.versions.add(own, step)
  addRewards(tally, figures)
  if (endings.some(([, , reward]) => reward !== endings[0]![2])) tally.contrast++
  for (const kind of [
    'untempered',
    'outcomes',
    'failures',
    'filters',
    'events',
    'fidelity',
  ] as const) {
    for (const [word, count] of figures[kind]) tally[kind].add(word, count)
  }
  for (const own of figures.tools) addTool(tally, own)
  for (const [cause, cost] of figures.forks) addFork(tally.forks, cause, cost)
  for (const own of figures.slowest) tally.slowest.add(own)
  tally.turns.push(...figures.turns)
  tally.lengths.push(...figures.lengths)
  tally.prompt += figures.prompt
  tally.cached += figures.cached
  for (const lane of ['policy', 'tools', 'environment', 'reward'] as const) {
    tally.seconds[lane] += seconds[lane]
  }
}

function addRewards(tally: Tally, { endings, parts }: GroupFigures): void {
  const succeeded = endings.map(([tree, share, reward]) => ({
    tree,
    share,
    value: Number(succeeds(reward, tally.successAt)),
  }))
  const shares = attemptMeans(succeeded)
  if (shares.length > 0) tally.attempts.push({ share: mean(shares), trials: shares.length })
  for (const [, , reward] of endings) tally.rewards.push(reward)
  for (const [name, score, weight] of parts) {
    const part = tally.parts.get(name) ?? { scores: [], weight }
    tally.parts.set(name, part)
    part.scores.push(score)
    part.weight = weight
  }
}

function addTool(tally: Tally, { tool, calls, seconds, problems }: ToolFigures): void {
  const entry = tally.tools.get(tool) ?? { calls: 0, problems: makeCounter(), seconds: 0 }
  entry.calls += calls
  entry.seconds += seconds
  for (const [problem, count] of problems) entry.problems.add(problem, count)
  tally.tools.set(tool, entry)
}

function toReport(tally: Tally): Report {
  const { rewards, successAt } = tally
  const attempts = tally.attempts.toSorted((a, b) => a.share - b.share || a.trials - b.trials)
  return {
    groups: tally.groups,
    trees: tally.trees,
    trajectories: tally.lengths.length,
    success:
      rewards.length === 0 || isShownOnly(tally)
        ? null
        : {
            rate: mean(attempts.map(({ share }) => share)),
            interval: clusteredInterval(attempts),
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
