import { carried } from '../../base/core/carried.ts'
import { generalised } from '../../base/core/failure.ts'
import type { Group, Unscored, Weighted } from '../../base/core/group.ts'
import type { Trajectory } from '../../base/core/trajectory.ts'
import type { Tree } from '../../base/core/tree.ts'
import type { CondenseFigures } from './condense-figures.ts'
import { makeCounter, type Slow } from './tallies.ts'
import {
  addFork,
  type ForkCost,
  figuresOf,
  type ToolFigures,
  type TrajectoryFigures,
  type TreeFigures,
} from './tree-figures.ts'

type Counts = readonly (readonly [word: string, count: number])[]

/**
 * What a report counts of one group, as plain JSON. Whoever made the group can count it; where the run is
 * added up, its trees are then not looked into.
 */
export interface GroupFigures {
  /** Sampled tokens of every tree, by version. */
  readonly versions: readonly TreeFigures['versions'][]
  readonly untempered: Counts
  /** The scored trajectories: the tree of each by its number, its share of that tree, its reward. */
  readonly endings: readonly (readonly [tree: number, share: number, reward: number])[]
  readonly parts: readonly (readonly [name: string, score: number, weight: number])[]
  readonly outcomes: Counts
  /** Failures, each as the JSON of boundary and message. */
  readonly failures: Counts
  readonly filters: Counts
  readonly tools: readonly ToolFigures[]
  readonly events: Counts
  readonly forks: readonly (readonly [cause: string, cost: ForkCost])[]
  readonly fidelity: Counts
  /** Of every trajectory, the scored ones first. */
  readonly turns: readonly number[]
  readonly lengths: readonly number[]
  readonly condensing?: readonly (CondenseFigures | null)[]
  readonly prompt: number
  readonly cached: number
  readonly seconds: Trajectory['volatile']['seconds']
  readonly slowest: readonly Slow[]
}

const counted = carried(countGroup)

/** A group that need not be looked into to be counted. */
export const withGroupFigures = counted.with

/** What was counted of a group, by whoever made it or now. */
export const groupFiguresOf = counted.of

/** Counts a group that is at hand. */
export function countGroup({ members, unscored }: Group): GroupFigures {
  const trees = new Map<Tree, TreeFigures>()
  const all: readonly (Weighted | Unscored)[] = [...members, ...unscored]
  for (const { tree } of all) if (!trees.has(tree)) trees.set(tree, figuresOf(tree))
  const numbers = [...trees.keys()]
  const figures = all.map(
    ({ tree, trajectory: { id } }) => trees.get(tree)!.trajectories.find(each => each.id === id)!,
  )
  return {
    versions: [...trees.values()].map(({ versions }) => versions),
    untempered: [...trees.values()].flatMap(({ untempered }) => untempered),
    endings: members.map(({ tree, trajectory, reward }) => [
      numbers.indexOf(tree),
      trajectory.share,
      reward.total,
    ]),
    parts: members.flatMap(({ reward }) =>
      reward.parts.map(({ name, score, weight }) => [name, score, weight] as const),
    ),
    ...countEnds(members, unscored),
    ...countTrajectories(all, figures),
    ...addUp(all),
    slowest: all.map(({ trajectory }, index) => slowOf(trajectory, figures[index]!.turns)),
  }
}

function countEnds(members: readonly Weighted[], unscored: readonly Unscored[]) {
  const outcomes = makeCounter()
  const failures = makeCounter()
  const filters = makeCounter()
  for (const { trajectory, dropped } of members) {
    const { outcome } = trajectory
    outcomes.add(outcome.kind === 'truncated' ? `truncated by ${outcome.limit}` : outcome.kind)
    if (dropped) filters.add(dropped.filter)
  }
  for (const { outcome } of unscored) {
    const where = outcome.kind === 'failed' ? `failed in ${outcome.boundary}` : 'aborted'
    outcomes.add(where)
    const message = outcome.kind === 'failed' ? outcome.message : outcome.by
    failures.add(JSON.stringify([where, generalised(message)]))
  }
  return {
    outcomes: outcomes.entries(),
    failures: failures.entries(),
    filters: filters.entries(),
  }
}

function countTrajectories(
  all: readonly (Weighted | Unscored)[],
  figures: readonly TrajectoryFigures[],
) {
  const events = makeCounter()
  const fidelity = makeCounter()
  const forks = new Map<string, ForkCost>()
  for (const { trajectory } of all) {
    // What failed before it sampled anything is neither exact nor not.
    const isNothing = trajectory.outcome.kind === 'failed' && trajectory.usage.sampled === 0
    if (!isNothing) fidelity.add(trajectory.fidelity.kind)
  }
  for (const own of figures) {
    for (const [kind, count] of own.events) events.add(kind, count)
    for (const [cause, cost] of own.forks) addFork(forks, cause, cost)
  }
  const isCondensed = figures.some(({ condensing }) => condensing !== undefined)
  return {
    tools: addTools(figures.flatMap(({ tools }) => tools)),
    events: events.entries(),
    forks: [...forks],
    fidelity: fidelity.entries(),
    turns: figures.map(({ turns }) => turns),
    lengths: all.map(({ trajectory }) => trajectory.usage.sampled),
    ...(isCondensed && { condensing: figures.map(({ condensing }) => condensing ?? null) }),
  }
}

/** One entry per tool. */
function addTools(all: readonly ToolFigures[]): readonly ToolFigures[] {
  const tools = new Map<string, ToolFigures>()
  for (const own of all) {
    const { tool, calls, seconds, problems } = own
    const known = tools.get(tool)
    tools.set(
      tool,
      known
        ? {
            tool,
            calls: known.calls + calls,
            seconds: known.seconds + seconds,
            problems: [...known.problems, ...problems],
          }
        : own,
    )
  }
  return [...tools.values()]
}

function addUp(all: readonly (Weighted | Unscored)[]) {
  const sums = { prompt: 0, cached: 0 }
  const seconds = { policy: 0, tools: 0, environment: 0, reward: 0 }
  for (const { trajectory } of all) {
    const { usage, volatile } = trajectory
    sums.prompt += usage.prompt
    sums.cached += volatile.cached
    seconds.policy += volatile.seconds.policy
    seconds.tools += volatile.seconds.tools
    seconds.environment += volatile.seconds.environment
    seconds.reward += volatile.seconds.reward
  }
  return { ...sums, seconds }
}

function slowOf({ id, usage, volatile }: Trajectory, turns: number): Slow {
  const { policy, tools, environment, reward } = volatile.seconds
  const seconds = policy + tools + environment + reward
  return { trajectory: id, seconds, turns, sampled: usage.sampled }
}
