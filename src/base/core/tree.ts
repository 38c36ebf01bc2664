import type { ToolDefinition } from '@espalier/text'
import type { TaskId, TreeId } from './ids.ts'
import type { Sampling } from './policy.ts'
import {
  type GivenSegment,
  given,
  isSampled,
  type SampledSegment,
  type Segment,
} from './segment.ts'
import type { Trajectory } from './trajectory.ts'

/** A place in a tree: after the first `offset` tokens of node `node`. */
export interface Place {
  readonly node: number
  readonly offset: number
}

/** How a node relates to the past. Only `extends` goes on from its parent's exact tokens. */
export type Lineage =
  | { readonly kind: 'extends' }
  | {
      readonly kind: 'rewrites'
      /** The end of the path that this one replaces. */
      readonly of: Place
      /** What rewrote it: a template, a condenser, a step prompt. */
      readonly by: string
      /** The cause in words. */
      readonly reason: string
    }

/** A segment with its place in the tree. */
export interface TreeNode {
  readonly segment: Segment
  /** What comes before: the first `offset` tokens of the parent, and all before them. */
  readonly parent: Place
  /** Tokens on the path before this node. */
  readonly start: number
  readonly lineage: Lineage
}

/** What a tree is begun with. */
export interface TreeHeader {
  readonly id: TreeId
  readonly task: TaskId
  readonly member: number
  /** Whose tree it is, if the attempt has several seats. */
  readonly seat?: string
  readonly seed: number
  readonly sampling: Sampling
  readonly tools: readonly ToolDefinition[]
  /** Names the renderer and the history mode that made its tokens. */
  readonly renderer: string
}

/**
 * All that was said to or by the policy in one attempt, or one search, at one task: a tree of
 * segments that only ever grows. Node 0 is the empty root.
 */
export interface Tree extends TreeHeader {
  readonly nodes: readonly TreeNode[]
  readonly trajectories: readonly Trajectory[]
}

/** The place before every token. */
export const root: Place = { node: 0, offset: 0 }

const rootNode: TreeNode = {
  segment: given('prompt', new Int32Array(0)),
  parent: root,
  start: 0,
  lineage: { kind: 'extends' },
}

/** A tree while it grows. */
export interface GrowingTree extends Tree {
  /** Appends a segment at a place; gives the place at its end. */
  append(at: Place, segment: Segment, lineage?: Lineage): Place
  /** Records an attempt that ended. */
  end(trajectory: Trajectory): void
}

/** Plants a tree. */
export function plantTree(header: TreeHeader): GrowingTree {
  const { id, task, member, seat, seed, sampling, tools, renderer } = header
  const nodes: TreeNode[] = [rootNode]
  const trajectories: Trajectory[] = []
  return {
    id,
    task,
    member,
    ...(seat !== undefined && { seat }),
    seed,
    sampling,
    tools,
    renderer,
    nodes,
    trajectories,
    append(at, segment, lineage = { kind: 'extends' }) {
      checkPlace(nodes, at)
      if (lineage.kind === 'rewrites') checkPlace(nodes, lineage.of)
      const start = nodes[at.node]!.start + at.offset
      nodes.push({ segment, parent: at, start, lineage })
      return { node: nodes.length - 1, offset: segment.ids.length }
    },
    end(trajectory) {
      checkPlace(nodes, trajectory.end)
      trajectories.push(trajectory)
    },
  }
}

/** A tree read back from where it was stored; every place is checked. */
export function restoreTree(
  header: TreeHeader,
  nodes: readonly Omit<TreeNode, 'start'>[],
  trajectories: readonly Trajectory[],
): Tree {
  const tree = plantTree(header)
  for (const { parent, segment, lineage } of nodes) tree.append(parent, segment, lineage)
  for (const trajectory of trajectories) tree.end(trajectory)
  return tree
}

function checkPlace(nodes: readonly TreeNode[], { node, offset }: Place): void {
  const length = nodes[node]?.segment.ids.length
  if (length === undefined) {
    throw new RangeError(`no node ${node} in a tree of ${nodes.length} nodes`)
  }
  if (!Number.isInteger(offset) || offset < 0 || offset > length) {
    throw new RangeError(`no token ${offset} in node ${node}, which has ${length} tokens`)
  }
}

/** A part of a path: the first `length` tokens of a node, `start` tokens into the path. */
export interface Span {
  readonly node: number
  readonly start: number
  readonly length: number
}

/** The spans from the root to a place; empty ones are left out. */
export function pathTo(tree: Pick<Tree, 'nodes'>, end: Place): readonly Span[] {
  const spans: Span[] = []
  let place = end
  while (place.node !== 0) {
    const { parent, start } = tree.nodes[place.node]!
    if (place.offset > 0) spans.push({ node: place.node, start, length: place.offset })
    place = parent
  }
  return spans.reverse()
}

/** How many tokens lie on the path to a place. */
export function lengthTo(tree: Pick<Tree, 'nodes'>, end: Place): number {
  return tree.nodes[end.node]!.start + end.offset
}

/** The place after the first `tokens` tokens of the path to `end`. */
export function placeAt(tree: Pick<Tree, 'nodes'>, end: Place, tokens: number): Place {
  let place = end
  while (place.node !== 0 && tree.nodes[place.node]!.start >= tokens) {
    place = tree.nodes[place.node]!.parent
  }
  return { node: place.node, offset: tokens - tree.nodes[place.node]!.start }
}

/** The tokens on the path to a place, copied into one array. */
export function idsTo(tree: Pick<Tree, 'nodes'>, end: Place): Int32Array {
  const ids = new Int32Array(lengthTo(tree, end))
  for (const { node, start, length } of pathTo(tree, end)) {
    ids.set(tree.nodes[node]!.segment.ids.subarray(0, length), start)
  }
  return ids
}

/**
 * The ends of all paths that lead to a place through rewrites, oldest first, the place itself
 * last. A rewrite replaces the path that ended where its lineage says.
 */
export function pathEnds(tree: Pick<Tree, 'nodes'>, end: Place): readonly Place[] {
  const ends: Place[] = []
  let current: Place | undefined = end
  while (current) {
    ends.push(current)
    current = replacedBy(tree, current)
  }
  return ends.reverse()
}

function replacedBy(tree: Pick<Tree, 'nodes'>, end: Place): Place | undefined {
  for (let node = end.node; node !== 0; node = tree.nodes[node]!.parent.node) {
    const { lineage } = tree.nodes[node]!
    if (lineage.kind === 'rewrites') return lineage.of
  }
  return undefined
}

/** Cuts the token range `[from, to)` of a path into references to the nodes it repeats. */
export function repeatsOf(
  tree: Pick<Tree, 'nodes'>,
  end: Place,
  range: { readonly from: number; readonly to: number; readonly at: number },
): NonNullable<GivenSegment['repeats']> {
  const { from, to, at } = range
  return pathTo(tree, end)
    .map(span => ({
      span,
      low: Math.max(from, span.start),
      high: Math.min(to, span.start + span.length),
    }))
    .filter(({ low, high }) => low < high)
    .map(({ span, low, high }) => ({
      start: at + low - from,
      end: at + high - from,
      node: span.node,
      offset: low - span.start,
    }))
}

/** Whether the policy gave log-probabilities of a tree; then a sampled token without one is not trained. */
export function hasLogprobs({ nodes }: Pick<Tree, 'nodes'>): boolean {
  return nodes.some(({ segment }) => isSampled(segment) && segment.logprobs !== null)
}

/**
 * In words, how recorded log-probabilities differ from those a trainer computes at the sampling
 * temperature; `undefined` if they are the same.
 */
export function basisProblem(
  { basis, logprobs }: Pick<SampledSegment, 'basis' | 'logprobs'>,
  { temperature, topP, topK, minP }: Sampling,
): string | undefined {
  // Without log-probabilities, and at temperature 0, there is no ratio that could be wrong.
  if (!logprobs || temperature === 0) return undefined
  const cuts = [
    ...(topP < 1 ? [`top-p ${topP}`] : []),
    ...(topK > 0 ? [`top-k ${topK}`] : []),
    ...(minP > 0 ? [`min-p ${minP}`] : []),
  ]
  if (cuts.length > 0) {
    const from = basis === 'renormalised' ? 'after' : 'without'
    return `drawn with ${cuts.join(' and ')}, log-probabilities ${from} that cut`
  }
  if (basis === 'renormalised') return 'drawn in a form, log-probabilities among what it allows'
  return basis === 'raw' && temperature !== 1
    ? `raw, before the temperature of ${temperature}`
    : undefined
}

/** How many sampled tokens of a tree have log-probabilities that are not tempered, by basis. */
export function untemperedTokens(
  tree: Pick<Tree, 'nodes' | 'sampling'>,
): ReadonlyMap<string, number> {
  const counts = new Map<string, number>()
  for (const { segment } of tree.nodes) {
    if (!isSampled(segment)) continue
    const problem = basisProblem(segment, tree.sampling)
    if (problem !== undefined) counts.set(problem, (counts.get(problem) ?? 0) + segment.ids.length)
  }
  return counts
}
