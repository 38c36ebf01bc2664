import { type CreditSpan, turnByNode } from '../../base/core/credit.ts'
import type { VersionRange } from '../../base/core/segment.ts'
import type { Trajectory, Turn } from '../../base/core/trajectory.ts'
import { idsTo, pathEnds, pathTo, type Span, type Tree } from '../../base/core/tree.ts'
import { passagesWorth } from './credited-row.ts'

/** One turn of a trajectory with its tokens. */
export interface TurnTokens {
  readonly turn: Turn
  /** The turn's number in its trajectory. */
  readonly index: number
  /** The number of the path it was sampled on; a rewrite starts the next. */
  readonly path: number
  /** All tokens of that path; the turn's own lie at `[start, end)`. */
  readonly pathIds: Int32Array
  readonly start: number
  readonly end: number
  /** NaN if the policy gave none. */
  readonly logprobs: Float32Array
  /** 1 if this trajectory is the one that trains the token. */
  readonly mask: Uint8Array
  /** Advantage times weight of the tokens it trains; 0 elsewhere. */
  readonly credit: Float64Array
  readonly version: VersionRange
}

/** The credit of every node of a tree, as `creditByNode` gives it. */
export type NodeCredit = ReadonlyMap<number, readonly CreditSpan[]>

/** The turns of a trajectory with their tokens, oldest first; a turn cut by a fork has only its kept tokens. */
export function turnTokens(
  tree: Tree,
  trajectory: Trajectory,
  credit: NodeCredit,
): readonly TurnTokens[] {
  const turnOf = turnByNode(tree, trajectory)
  const found = new Map<number, TurnTokens>()
  pathEnds(tree, trajectory.end).forEach((end, path) => {
    const pathIds = idsTo(tree, end)
    const bySpans = new Map<number, Span[]>()
    for (const span of pathTo(tree, end)) {
      const index = turnOf.get(span.node)
      if (index === undefined || found.has(index)) continue
      if (tree.nodes[span.node]!.segment.origin !== 'sampled') continue
      const spans = bySpans.get(index)
      if (spans) spans.push(span)
      else bySpans.set(index, [span])
    }
    for (const [index, spans] of bySpans) {
      found.set(index, readTurn(tree, { trajectory, index, path, pathIds, spans, credit }))
    }
  })
  return [...found.values()].sort((a, b) => a.index - b.index)
}

function readTurn(
  tree: Tree,
  source: Pick<TurnTokens, 'index' | 'path' | 'pathIds'> & {
    readonly trajectory: Trajectory
    readonly spans: readonly Span[]
    readonly credit: NodeCredit
  },
): TurnTokens {
  const { trajectory, index, path, pathIds, spans, credit } = source
  const start = spans[0]!.start
  const last = spans.at(-1)!
  const end = last.start + last.length
  const logprobs = new Float32Array(end - start).fill(Number.NaN)
  const mask = new Uint8Array(end - start)
  const worth = new Float64Array(end - start)
  let version: VersionRange = { from: 0, to: 0 }
  spans.forEach((span, number) => {
    const { segment } = tree.nodes[span.node]!
    if (segment.origin !== 'sampled') return
    const at = span.start - start
    if (segment.logprobs) logprobs.set(segment.logprobs.subarray(0, span.length), at)
    version = number === 0 ? segment.version : { from: version.from, to: segment.version.to }
    for (const each of credit.get(span.node) ?? []) {
      // The first trajectory through a token trains it; to the others it is context.
      if (each.passages[0]?.trajectory !== trajectory.id) continue
      mask.fill(1, at + each.start, at + Math.min(each.end, span.length))
      const sum = each.importance ? passagesWorth(each.passages) : each.advantage * each.weight
      for (let token = each.start; token < Math.min(each.end, span.length); token++) {
        worth[at + token] = sum * (each.importance?.[token] ?? 1)
      }
    }
  })
  const turn = trajectory.turns[index]!
  return { turn, index, path, pathIds, start, end, logprobs, mask, credit: worth, version }
}
