import type { Stretch, TrajectoryImportance } from '../../base/core/credit.ts'
import { expertsKnown, type RoutedExperts, type RowExperts } from '../../base/core/experts.ts'
import type { GroupId } from '../../base/core/ids.ts'
import {
  type TaskId,
  type TrajectoryId,
  type TreeId,
  trajectoryId,
  treeId,
} from '../../base/core/ids.ts'
import { given, type Segment, sampled, type VersionRange } from '../../base/core/segment.ts'
import { plainTrajectory, type Trajectory, type Turn } from '../../base/core/trajectory.ts'
import {
  type GrowingTree,
  type Lineage,
  type Place,
  pathTo,
  plantTree,
  root,
  type Tree,
} from '../../base/core/tree.ts'
import type { ReadPassage, ReadPath, ReadSpan, ReadTrajectory } from '../sinks/reader.ts'
import { turnSpans } from '../sinks/readers/neutral.ts'
import {
  addCredit,
  addImportance,
  type ImportedCredit,
  type ImportedImportance,
  importanceOf,
  stretchesOf,
} from './imported-credit.ts'

/** A trajectory of a file with the tree it was grown into. */
export interface Grown {
  readonly source: ReadTrajectory
  readonly tree: Tree
  readonly trajectory: Trajectory
  /** Parts whose tokens have an advantage of their own. */
  readonly stretches: readonly Stretch[]
  readonly importance?: TrajectoryImportance
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
    ...(first.seat !== undefined && { seat: first.seat }),
    seed: first.seed,
    sampling: first.sampling,
    tools: first.tools,
    renderer,
  })
  const sharing: SharingTree = {
    ...{ tree, after: new Map(), company: new Map() },
    ...{ credit: new Map(), weights: new Map() },
  }
  const trajectories = new Map<ReadTrajectory, Trajectory>()
  // Rows of trajectories that are trained hold the tokens that the others share with them.
  const trainedFirst = [...sources].sort((a, b) => Number(isTrained(b)) - Number(isTrained(a)))
  for (const source of trainedFirst) {
    trajectories.set(source, growTrajectory(sharing, source, sources.indexOf(source)))
  }
  for (const source of sources) tree.end(trajectories.get(source)!)
  return sources.map(source => {
    const trajectory = trajectories.get(source)!
    const { advantage } = source
    const { credit, weights } = sharing
    const importance = importanceOf(tree, trajectory, { source, weights })
    return {
      source,
      tree,
      trajectory,
      stretches: stretchesOf(tree, trajectory, { advantage, credit }),
      ...(importance && { importance }),
    }
  })
}

const isTrained = ({ advantage, dropped }: ReadTrajectory): boolean =>
  advantage !== null && dropped === null

function growTrajectory(sharing: SharingTree, source: ReadTrajectory, index: number): Trajectory {
  const turns: Turn[] = []
  let end: Place = root
  const id = (source.id ?? trajectoryId(sharing.tree.id, index)) as TrajectoryId
  const owner = { id, isTrained: isTrained(source) }
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
    const places = growPath(sharing, path, { lineage, basis: source.basis, owner })
    end = places.end
    addCredit(sharing.credit, sharing.tree, { ...path, end, owner: id })
    addImportance(sharing.weights, sharing.tree, { ...path, end })
    for (const turn of places.turns) {
      // A path that goes on from a turn of an earlier one repeats it.
      if (turns.some(known => known.end.node === turn.end.node)) continue
      const messages = replies[turns.length] ?? source.messages.length
      turns.push({ ...turn, finish: { kind: 'stop' }, messages })
    }
  })
  return plainTrajectory({
    id,
    end,
    share: source.weight,
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
  /** By node, who passes through each token, if the file names them all. */
  readonly company: Map<number, Company[]>
  readonly credit: ImportedCredit
  readonly weights: ImportedImportance
}

type Company = readonly ReadPassage[] | undefined

/** Whose path is grown. */
interface Owner {
  readonly id: TrajectoryId
  readonly isTrained: boolean
}

/** Tokens to append, as far as they are not in the tree already. */
interface Growth {
  readonly segment: Segment
  readonly owner: Owner
  /** Who passes through each token, by the file; absent if it does not name all. */
  readonly company?: readonly Company[]
  /** Where it begins in its row, and the experts of that row's tokens. */
  readonly start: number
  readonly experts?: RowExperts
}

/** Appends a path, as far as it is not in the tree already. */
function growPath(
  sharing: SharingTree,
  path: ReadPath,
  options: {
    readonly lineage: Lineage
    readonly basis: ReadTrajectory['basis']
    readonly owner: Owner
  },
): PathPlaces {
  let place: Place = root
  let { lineage } = options
  const turns: { from: number; end: Place }[] = []
  let turnEnd = -1
  const company = companyOf(path, options.owner)
  for (const span of path.spans) {
    const segment = toSegment(path, span, options.basis)
    const growth: Growth = {
      segment,
      owner: options.owner,
      start: span.start,
      ...(path.experts && { experts: path.experts }),
      ...(company && { company: company.slice(span.start, span.end) }),
    }
    const walked = walkKnown(sharing, place, growth)
    place = walked.place
    if (walked.length < segment.ids.length) {
      place = append(sharing, place, { growth, from: walked.length, lineage })
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

/** Who passes through each token of a path, if its file names them all. */
function companyOf(
  { ids, passages = [], namesAll }: ReadPath,
  { id }: Owner,
): readonly Company[] | undefined {
  if (!namesAll) return undefined
  const company: Company[] = new Array(ids.length).fill(undefined)
  for (const { start, end, value } of passages) {
    company.fill(
      value.map(passage => ({ trajectory: id, ...passage })),
      start,
      end,
    )
  }
  return company
}

function append(
  { tree, after, company }: SharingTree,
  at: Place,
  { growth, from, lineage }: { growth: Growth; from: number; lineage: Lineage },
): Place {
  const end = tree.append(at, routed(tree, at, { growth, from }), lineage)
  const key = `${at.node}/${at.offset}`
  after.set(key, [...(after.get(key) ?? []), end.node])
  if (growth.company) company.set(end.node, growth.company.slice(from))
  return end
}

/** Follows a segment through what is in the tree already: how far, and the first node of it. */
function walkKnown(
  sharing: SharingTree,
  start: Place,
  growth: Growth,
): { readonly place: Place; readonly length: number; readonly first?: number } {
  let place = start
  let length = 0
  let first: number | undefined
  while (length < growth.segment.ids.length) {
    const known = sharing.after.get(`${place.node}/${place.offset}`) ?? []
    let best = { node: 0, offset: 0 }
    for (const node of known) {
      const offset = commonTokens(sharing, node, { growth, from: length })
      if (offset > best.offset) best = { node, offset }
    }
    if (best.offset === 0) break
    join(sharing, best, { growth, from: length })
    first ??= best.node
    place = best
    length += best.offset
  }
  return { place, length, ...(first !== undefined && { first }) }
}

/** Adds who passes through tokens that turned out to be known. */
function join(
  { company }: SharingTree,
  { node, offset }: Place,
  { growth, from }: { readonly growth: Growth; readonly from: number },
): void {
  const known = company.get(node)
  for (let token = 0; known && token < offset; token++) {
    const more = growth.company?.[from + token]
    if (more) known[token] = [...(known[token] ?? []), ...more]
  }
}

function toSegment(
  { ids, logprobs, others = {} }: ReadPath,
  { start, end, origin, version }: ReadSpan,
  basis: ReadTrajectory['basis'],
): Segment {
  const own = ids.slice(start, end)
  if (origin !== 'sampled') return given(origin, own)
  const known = logprobs.slice(start, end)
  const scored = Object.entries(others)
    .map(([name, values]) => [name, values.slice(start, end)] as const)
    .filter(([, values]) => !values.every(Number.isNaN))
  return sampled({
    ids: own,
    logprobs: known.every(Number.isNaN) ? null : known,
    basis,
    version,
    ...(scored.length > 0 && { others: Object.fromEntries(scored) }),
  })
}

/** What a growth appends, with the experts that were not told before and are known to its last token but one. */
function routed(
  tree: Tree,
  at: Place,
  { growth, from }: { readonly growth: Growth; readonly from: number },
): Segment {
  const segment = cut(growth.segment, from)
  const { experts, start } = growth
  const end = start + growth.segment.ids.length - 1
  if (!experts || segment.origin !== 'sampled' || experts.known < end) return segment
  const { layers, top, data } = experts
  const told = expertsKnown(tree, pathTo(tree, at))
  const own: RoutedExperts = {
    ...{ layers, top, before: start + from - told },
    data: data.slice(told * layers * top, end * layers * top),
  }
  return sampled({ ...segment, experts: own })
}

function cut(segment: Segment, from: number): Segment {
  if (from === 0) return segment
  const ids = segment.ids.slice(from)
  if (segment.origin !== 'sampled') return given(segment.origin, ids)
  const { logprobs, basis, version, others } = segment
  const rest = Object.entries(others ?? {}).map(([name, values]) => [name, values.slice(from)])
  return sampled({
    ids,
    logprobs: logprobs?.slice(from) ?? null,
    basis,
    version,
    ...(others && { others: Object.fromEntries(rest) }),
  })
}

/** How many tokens of a node are the next ones of a growth. */
function commonTokens(
  { tree, company }: SharingTree,
  node: number,
  { growth, from }: { readonly growth: Growth; readonly from: number },
): number {
  const known = tree.nodes[node]!.segment
  const { segment: next, owner } = growth
  if (known.origin !== next.origin) return 0
  // A file that does not name all who share a token has one version for a whole row.
  if (growth.company && !isSameVersion(known.version, next.version)) return 0
  const limit = Math.min(known.ids.length, next.ids.length - from)
  const isOne = (token: number): boolean =>
    known.origin !== 'sampled' ||
    !growth.company ||
    isShared(company.get(node)?.[token], growth.company[from + token], owner)
  let same = 0
  while (same < limit && isSameToken({ known, next, same, from }) && isOne(same)) same++
  return same
}

function isSameVersion(known?: VersionRange, next?: VersionRange): boolean {
  return known?.from === next?.from && known?.to === next?.to
}

function isSameToken(at: {
  readonly known: Segment
  readonly next: Segment
  readonly same: number
  readonly from: number
}): boolean {
  const { known, next, same, from } = at
  if (known.ids[same] !== next.ids[from + same]) return false
  if (known.origin !== 'sampled') return true
  const before = known.logprobs?.[same] ?? Number.NaN
  return Object.is(before, next.logprobs?.[from + same] ?? Number.NaN)
}

/**
 * Whether an equal sampled token is the same one. A row trains what no row before it did: a token that it trains is
 * a new one, unless its share says that other rows hold it too; to other tokens of a trajectory, it must have been told.
 */
function isShared(known: Company, own: Company, owner: Owner): boolean {
  if (own) return known !== undefined && isPartly(own) && isPartly(known)
  return !owner.isTrained || !known || known.some(({ trajectory }) => trajectory === owner.id)
}

const isPartly = (passages: readonly ReadPassage[]): boolean =>
  passages.reduce((sum, { share }) => sum + share, 0) < 1 - 1e-9
