import type { GroupId } from '../core/ids.ts'
import { type TaskId, type TrajectoryId, type TreeId, trajectoryId, treeId } from '../core/ids.ts'
import { given, type Segment, sampled } from '../core/segment.ts'
import { plainTrajectory, type Trajectory, type Turn } from '../core/trajectory.ts'
import {
  type GrowingTree,
  type Lineage,
  type Place,
  plantTree,
  root,
  type Tree,
} from '../core/tree.ts'
import type { ReadPath, ReadSpan, ReadTrajectory } from '../sinks/reader.ts'
import { turnSpans } from '../sinks/readers/neutral.ts'

/** A trajectory of a file with the tree it was grown into. */
export interface Grown {
  readonly source: ReadTrajectory
  readonly tree: Tree
  readonly trajectory: Trajectory
}

/**
 * Grows the tree of trajectories that belong to one attempt. A common beginning is stored once, as it
 * was rolled; each further sequence of a trajectory is a rewrite of the one before it.
 */
export function growImported(
  sources: readonly ReadTrajectory[],
  renderer: string,
): readonly Grown[] {
  const first = sources[0]!
  const id = (first.tree ?? treeId(first.group as GroupId, first.member)) as TreeId
  const tree = plantTree({
    id,
    task: first.task as TaskId,
    member: first.member,
    seed: first.seed,
    sampling: first.sampling,
    tools: first.tools,
    renderer,
  })
  const sharing: SharingTree = { tree, after: new Map() }
  const grown = sources.map((source, index) => {
    const trajectory = growTrajectory(sharing, source, index)
    tree.end(trajectory)
    return { source, trajectory }
  })
  return grown.map(each => ({ ...each, tree }))
}

function growTrajectory(sharing: SharingTree, source: ReadTrajectory, index: number): Trajectory {
  const turns: Turn[] = []
  let end: Place = root
  const replies = source.messages.flatMap(({ role }, place) =>
    role === 'assistant' ? [place] : [],
  )
  source.paths.forEach((path, number) => {
    const before = end
    const lineage: Lineage =
      number === 0
        ? { kind: 'extends' }
        : {
            kind: 'rewrites',
            of: before,
            by: 'import',
            reason: source.fidelity.forks[number - 1]?.reason ?? 'the file has another sequence',
          }
    const places = growPath(sharing, path, { lineage, basis: source.basis })
    end = places.end
    for (const turn of places.turns) {
      const messages = replies[turns.length] ?? source.messages.length
      turns.push({ ...turn, finish: { kind: 'stop' }, messages })
    }
  })
  return plainTrajectory({
    id: (source.id ?? trajectoryId(sharing.tree.id, index)) as TrajectoryId,
    end,
    outcome: source.outcome,
    turns,
    messages: source.messages,
    ...(source.report !== undefined && { report: source.report }),
    fidelity: source.fidelity,
    usage: source.usage ?? usageOf(source.paths),
  })
}

function usageOf(paths: readonly ReadPath[]) {
  const turns = paths.flatMap(path => turnSpans(path))
  return {
    sampled: turns.reduce((sum, { start, end }) => sum + end - start, 0),
    prompt: turns.reduce((sum, { start }) => sum + start, 0),
  }
}

interface PathPlaces {
  readonly end: Place
  readonly turns: readonly Pick<Turn, 'from' | 'end'>[]
}

/** A tree that knows what comes after each of its places, so that beginnings are shared. */
interface SharingTree {
  readonly tree: GrowingTree
  readonly after: Map<string, number[]>
}

/** Appends a path, as far as it is not in the tree already. */
function growPath(
  sharing: SharingTree,
  path: ReadPath,
  options: { readonly lineage: Lineage; readonly basis: ReadTrajectory['basis'] },
): PathPlaces {
  let place: Place = root
  let { lineage } = options
  const turns: { from: number; end: Place }[] = []
  let turnEnd = -1
  for (const span of path.spans) {
    const segment = toSegment(path, span, options.basis)
    const walked = walkKnown(sharing, place, segment)
    place = walked.place
    if (walked.length < segment.ids.length) {
      place = append(sharing, place, { segment: cut(segment, walked.length), lineage })
      lineage = { kind: 'extends' }
    }
    if (span.origin !== 'sampled') continue
    const last = turns.at(-1)
    if (last && turnEnd === span.start) last.end = place
    else turns.push({ from: walked.first ?? place.node, end: place })
    turnEnd = span.end
  }
  return { end: place, turns }
}

function append(
  { tree, after }: SharingTree,
  at: Place,
  { segment, lineage }: { readonly segment: Segment; readonly lineage: Lineage },
): Place {
  const end = tree.append(at, segment, lineage)
  const key = `${at.node}/${at.offset}`
  after.set(key, [...(after.get(key) ?? []), end.node])
  return end
}

/** Follows a segment through what is in the tree already: how far, and the first node of it. */
function walkKnown(
  { tree, after }: SharingTree,
  start: Place,
  segment: Segment,
): { readonly place: Place; readonly length: number; readonly first?: number } {
  let place = start
  let length = 0
  let first: number | undefined
  while (length < segment.ids.length) {
    const rest = cut(segment, length)
    const known = after.get(`${place.node}/${place.offset}`) ?? []
    let best = { node: 0, offset: 0 }
    for (const node of known) {
      const offset = commonTokens(tree.nodes[node]!.segment, rest)
      if (offset > best.offset) best = { node, offset }
    }
    if (best.offset === 0) break
    first ??= best.node
    place = best
    length += best.offset
  }
  return { place, length, ...(first !== undefined && { first }) }
}

function toSegment(
  { ids, logprobs }: ReadPath,
  { start, end, origin, version }: ReadSpan,
  basis: ReadTrajectory['basis'],
): Segment {
  const own = ids.slice(start, end)
  if (origin !== 'sampled') return given(origin, own)
  const known = logprobs.slice(start, end)
  const isKnown = !known.some(Number.isNaN)
  return sampled({ ids: own, logprobs: isKnown ? known : null, basis, version })
}

function cut(segment: Segment, from: number): Segment {
  if (from === 0) return segment
  const ids = segment.ids.slice(from)
  if (segment.origin !== 'sampled') return given(segment.origin, ids)
  const { logprobs, basis, version } = segment
  return sampled({ ids, logprobs: logprobs?.slice(from) ?? null, basis, version })
}

function commonTokens(known: Segment, next: Segment): number {
  if (known.origin !== next.origin) return 0
  if (known.origin === 'sampled' && next.origin === 'sampled') {
    if (known.version.from !== next.version.from || known.version.to !== next.version.to) return 0
    if ((known.logprobs === null) !== (next.logprobs === null)) return 0
  }
  const limit = Math.min(known.ids.length, next.ids.length)
  let same = 0
  while (same < limit && isSameToken(known, next, same)) same++
  return same
}

function isSameToken(known: Segment, next: Segment, token: number): boolean {
  if (known.ids[token] !== next.ids[token]) return false
  return known.logprobs?.[token] === next.logprobs?.[token]
}
