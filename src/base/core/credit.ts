import { creditOf, type LeafWeighting } from '../math/credit.ts'
import type { TrajectoryId } from './ids.ts'
import type { Trajectory } from './trajectory.ts'
import { hasLogprobs, pathEnds, pathTo, type Tree } from './tree.ts'

/** What one trajectory's tokens are trained with. */
export interface Credit {
  readonly trajectory: TrajectoryId
  readonly advantage: number
  readonly weight: number
  /** Advantages turn by turn, if they differ from the trajectory's own. */
  readonly turns?: readonly number[]
  /** Advantages of parts of turns, if they differ from the turn's own. */
  readonly stretches?: readonly Stretch[]
  /** Importance weights, which correct for tokens sampled from other weights than those that learn. */
  readonly importance?: TrajectoryImportance
}

/** Importance weights of a trajectory's tokens: one factor for all, times one for each token. */
export interface TrajectoryImportance {
  readonly factor: number
  /** By node: the factors of its tokens, the same for every trajectory through them. */
  readonly nodes: ReadonlyMap<number, Float64Array>
  /** Which ratios it contains; if any, a loss must start its own ratio from the log-probabilities where these end. */
  readonly ratios: 'none' | 'trajectories' | 'tokens'
}

/** The tokens `[start, end)` of a node, and their advantage. */
export interface Stretch {
  readonly node: number
  readonly start: number
  readonly end: number
  readonly advantage: number
}

/** A trajectory on its way through a token: what the token is worth to it. */
export interface Passage {
  readonly trajectory: TrajectoryId
  readonly advantage: number
  /** How much of the batch the whole trajectory stands for. */
  readonly weight: number
  /** How much the token counts among the trajectory's own: less than 1 if `hard` divides it. */
  readonly share: number
  /** The trajectory's importance weight; absent if nothing is weighed. */
  readonly importance?: number
}

/** The credit of some tokens of a node: the trajectories that pass through them, and their mean. */
export interface CreditSpan {
  readonly start: number
  readonly end: number
  /** The weighted mean of what the tokens are worth to the trajectories through them. */
  readonly advantage: number
  /** The total weight of those trajectories; 1 when `hard`. */
  readonly weight: number
  readonly passages: readonly Passage[]
  /** Importance weights of the node's tokens, alike for all who pass; absent if nothing is weighed. */
  readonly importance?: Float64Array
}

/** The weight a trajectory has in its group, by the weighting. */
export function leafWeight(trajectory: Trajectory, weighting: LeafWeighting): number {
  return weighting === 'branch' ? trajectory.share : 1
}

/** How far into each node a trajectory goes, over all its paths. */
export function coverageOf(tree: Tree, trajectory: Trajectory): ReadonlyMap<number, number> {
  const coverage = new Map<number, number>()
  for (const end of pathEnds(tree, trajectory.end)) {
    for (const { node, length } of pathTo(tree, end)) {
      coverage.set(node, Math.max(length, coverage.get(node) ?? 0))
    }
  }
  return coverage
}

/** For every node of a tree, the credit of its tokens: weighted means over the trajectories through them. */
export function creditByNode(
  tree: Tree,
  credits: readonly Credit[],
  weighting: LeafWeighting,
): ReadonlyMap<number, readonly CreditSpan[]> {
  const byTrajectory = new Map(credits.map(credit => [credit.trajectory, credit]))
  const passing = new Map<number, Through[]>()
  for (const trajectory of tree.trajectories) {
    const credit = byTrajectory.get(trajectory.id)
    if (!credit) continue
    const turnOf = credit.turns && turnByNode(tree, trajectory)
    const stretchesOf = credit.stretches && stretchesByNode(credit.stretches)
    for (const [node, length] of coverageOf(tree, trajectory)) {
      if (tree.nodes[node]!.segment.origin !== 'sampled') continue
      const turn = turnOf?.get(node)
      const advantage =
        turn === undefined ? credit.advantage : (credit.turns?.[turn] ?? credit.advantage)
      const stretches = stretchesOf?.get(node) ?? []
      const { weight, importance } = credit
      const through = {
        length,
        advantage,
        stretches,
        weight,
        trajectory: trajectory.id,
        ...(importance && { factor: importance.factor, tokens: importance.nodes.get(node)! }),
      }
      const others = passing.get(node)
      if (others) others.push(through)
      else passing.set(node, [through])
    }
  }
  const isMeasured = hasLogprobs(tree)
  return new Map(
    [...passing].map(([node, list]) => {
      const spans = toSpans(list, weighting)
      const { logprobs = null } = tree.nodes[node]!.segment
      return [node, isMeasured ? withNumbers(spans, logprobs) : spans]
    }),
  )
}

/** The parts of spans whose tokens have a log-probability; if no ratio is known, nothing is learned. */
function withNumbers(
  spans: readonly CreditSpan[],
  logprobs: Float32Array | null,
): readonly CreditSpan[] {
  if (logprobs === null) return []
  if (!logprobs.some(Number.isNaN)) return spans
  return spans.flatMap(span => {
    const parts: CreditSpan[] = []
    for (let token = span.start; token < span.end; token++) {
      if (Number.isNaN(logprobs[token])) continue
      const start = token
      while (token + 1 < span.end && !Number.isNaN(logprobs[token + 1])) token++
      parts.push({ ...span, start, end: token + 1 })
    }
    return parts
  })
}

/** A trajectory that goes some tokens into a node. */
interface Through {
  readonly length: number
  readonly advantage: number
  readonly stretches: readonly Stretch[]
  readonly weight: number
  readonly trajectory: TrajectoryId
  /** Its importance, and that of the node's tokens. */
  readonly factor?: number
  readonly tokens?: Float64Array
}

function stretchesByNode(stretches: readonly Stretch[]): ReadonlyMap<number, readonly Stretch[]> {
  const byNode = new Map<number, Stretch[]>()
  for (const stretch of stretches) {
    const others = byNode.get(stretch.node)
    if (others) others.push(stretch)
    else byNode.set(stretch.node, [stretch])
  }
  return byNode
}

/** The number of the turn that each sampled node of a trajectory belongs to. */
export function turnByNode(tree: Tree, trajectory: Trajectory): ReadonlyMap<number, number> {
  const turns = new Map<number, number>()
  trajectory.turns.forEach((turn, index) => {
    for (let node = turn.end.node; ; node = tree.nodes[node]!.parent.node) {
      turns.set(node, index)
      if (node === turn.from || node === 0) break
    }
  })
  return turns
}

function toSpans(all: readonly Through[], weighting: LeafWeighting): readonly CreditSpan[] {
  const ends = endsOf(all)
  const importance = longestOf(all.flatMap(({ tokens }) => tokens ?? []))
  return ends.map((end, index) => {
    const through = all.filter(({ length }) => length >= end)
    const total = through.reduce((sum, { weight }) => sum + weight, 0)
    const share = weighting === 'hard' && total > 0 ? 1 / total : 1
    const passages = through.map(each => ({
      trajectory: each.trajectory,
      advantage: advantageAt(each, end),
      weight: each.weight,
      share,
      ...(each.factor !== undefined && { importance: each.factor }),
    }))
    const { advantage = 0, weight = 0 } = creditOf(weighting, passages) ?? {}
    const start = ends[index - 1] ?? 0
    return { start, end, advantage, weight, passages, ...(importance && { importance }) }
  })
}

/** Trajectories that go further into a node know the weights of more of its tokens. */
function longestOf(lists: readonly Float64Array[]): Float64Array | undefined {
  return lists.reduce<Float64Array | undefined>(
    (longest, list) => (list.length > (longest?.length ?? -1) ? list : longest),
    undefined,
  )
}

/** Spans as one of their trajectories sees them: its own advantage, and its own weight. */
export function ownSpans(
  spans: ReadonlyMap<number, readonly CreditSpan[]>,
  trajectory: TrajectoryId,
): ReadonlyMap<number, readonly CreditSpan[]> {
  const own = (span: CreditSpan): readonly CreditSpan[] =>
    span.passages
      .filter(passage => passage.trajectory === trajectory)
      .map(passage => ({
        ...span,
        advantage: passage.advantage,
        weight: passage.weight * passage.share,
        passages: [passage],
      }))
  return new Map([...spans].map(([node, list]) => [node, list.flatMap(own)]))
}

/** Where the credit of a node's tokens can change. */
function endsOf(all: readonly Through[]): readonly number[] {
  const longest = all.reduce((most, { length }) => Math.max(most, length), 0)
  const ends = all.flatMap(({ length, stretches }) => [
    length,
    ...stretches.flatMap(({ start, end }) => [start, end]),
  ])
  return [...new Set(ends)].filter(end => end > 0 && end <= longest).sort((a, b) => a - b)
}

/** The advantage of the token before `end`. */
function advantageAt({ stretches, advantage }: Through, end: number): number {
  return (
    stretches.find(stretch => stretch.start < end && end <= stretch.end)?.advantage ?? advantage
  )
}
