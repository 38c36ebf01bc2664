import { carried } from '../../base/core/carried.ts'
import type { TrajectoryId } from '../../base/core/ids.ts'
import { isSampled } from '../../base/core/segment.ts'
import type { Trajectory, TrajectoryEvent } from '../../base/core/trajectory.ts'
import { type Tree, untemperedTokens } from '../../base/core/tree.ts'
import { type CondenseFigures, condenseFigures } from './condense-figures.ts'

/**
 * What a report counts of one tree. Whoever made the tree can count it; where the run is added up, the
 * tree itself is then not looked into.
 */
export interface TreeFigures {
  /** Sampled tokens by the oldest and the newest version of the weights that may have drawn them. */
  readonly versions: readonly (readonly [from: number, to: number, tokens: number])[]
  /** Sampled tokens whose log-probabilities are not the tempered ones, by what they are instead. */
  readonly untempered: readonly (readonly [problem: string, tokens: number])[]
  readonly trajectories: readonly TrajectoryFigures[]
}

/** What a report counts of one trajectory, besides what is known of it without its turns. */
export interface TrajectoryFigures {
  readonly id: TrajectoryId
  readonly turns: number
  readonly tools: readonly ToolFigures[]
  /** How often something happened, by its kind; calls of tools are counted with their tool. */
  readonly events: readonly (readonly [kind: string, count: number])[]
  readonly forks: readonly (readonly [cause: string, cost: ForkCost])[]
  /** Set if something was condensed or recalled, or should have been. */
  readonly condensing?: CondenseFigures
}

/** The calls of one tool in one trajectory. */
export interface ToolFigures {
  readonly tool: string
  readonly calls: number
  readonly seconds: number
  readonly problems: readonly (readonly [problem: string, count: number])[]
}

/** How often a path was forked, the tokens read for it, and those that could be kept. */
export interface ForkCost {
  readonly count: number
  readonly read: number
  readonly kept: number
}

const counted = carried(countTree)

/** A tree that need not be looked into to be counted. */
export const withFigures = counted.with

/** What was counted of a tree, by whoever made it or now. */
export const figuresOf = counted.of

/** Counts a tree that is at hand. */
export function countTree(tree: Tree): TreeFigures {
  return {
    versions: versionsIn(tree),
    untempered: [...untemperedTokens(tree)],
    trajectories: tree.trajectories.map(trajectory => countTrajectory(tree, trajectory)),
  }
}

function versionsIn({ nodes }: Tree): TreeFigures['versions'] {
  const versions: [number, number, number][] = []
  for (const { segment } of nodes) {
    if (!isSampled(segment)) continue
    const { from, to } = segment.version
    const known = versions.find(each => each[0] === from && each[1] === to)
    if (known) known[2] += segment.ids.length
    else versions.push([from, to, segment.ids.length])
  }
  return versions
}

function countTrajectory(tree: Tree, trajectory: Trajectory): TrajectoryFigures {
  const { id, turns, calls, events } = trajectory
  const condensing = condenseFigures(tree, trajectory)
  return {
    id,
    turns: turns.length,
    tools: countCalls(calls),
    events: countWords(events.map(({ kind }) => kind).filter(kind => !kind.startsWith('tool:'))),
    forks: countForks(events),
    ...(condensing && { condensing }),
  }
}

/** Nearly all trajectories call one tool, and most calls have no problem. */
function countCalls(calls: Trajectory['calls']): readonly ToolFigures[] {
  const tools: Counting[] = []
  for (const { tool, seconds, problem } of calls) {
    const known = tools.find(each => each.tool === tool)
    const own = known ?? { tool, calls: 0, seconds: 0, problems: [] }
    if (!known) tools.push(own)
    own.calls++
    own.seconds += seconds
    if (problem !== undefined) own.problems.push(problem)
  }
  return tools.map(own => ({ ...own, problems: countWords(own.problems) }))
}

/** A tool whose calls are being counted. */
interface Counting {
  readonly tool: string
  calls: number
  seconds: number
  readonly problems: string[]
}

function countForks(events: readonly TrajectoryEvent[]): TrajectoryFigures['forks'] {
  const forks = new Map<string, ForkCost>()
  for (const { kind, figures = {} } of events) {
    if (!kind.startsWith('fork:')) continue
    const { read = 0, kept = 0 } = figures
    addFork(forks, kind.slice('fork:'.length), { count: 1, read, kept })
  }
  return [...forks]
}

/** Adds the cost of forks of one cause to that of others. */
export function addFork(forks: Map<string, ForkCost>, cause: string, more: ForkCost): void {
  const { count, read, kept } = forks.get(cause) ?? { count: 0, read: 0, kept: 0 }
  forks.set(cause, { count: count + more.count, read: read + more.read, kept: kept + more.kept })
}

function countWords(words: readonly string[]): readonly (readonly [string, number])[] {
  if (words.length === 0) return []
  const counts = new Map<string, number>()
  for (const word of words) counts.set(word, (counts.get(word) ?? 0) + 1)
  return [...counts]
}
