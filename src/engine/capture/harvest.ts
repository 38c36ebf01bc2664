import { type GivenSegment, given } from '../../base/core/segment.ts'
import type { Turn } from '../../base/core/trajectory.ts'
import {
  type GrowingTree,
  idsTo,
  type Lineage,
  type Place,
  pathTo,
  placeAt,
  root,
} from '../../base/core/tree.ts'
import { placesBehind } from '../rollout/images/places.ts'
import { findRepeats } from '../rollout/repeats.ts'
import { type CapturedTurn, type Fork, promptLength, turnLength } from './turn.ts'
import { findCause } from './why/cause.ts'

/** Where the parts of a turn stand in the tree, once they do. */
interface Placed {
  prompt?: Place
  /** The first sampled node, and the end of the last. */
  own?: { readonly from: number; readonly end: Place }
}

/** A turn where it stands in the tree. */
export interface PlantedTurn {
  readonly captured: CapturedTurn
  /** Set on the first turn of a path that does not go on from the one before it. */
  readonly fork?: Fork
  readonly turn: Pick<Turn, 'from' | 'end' | 'finish'>
}

/** Adds paths to the tree one after the other; each names the one before it, so that every path becomes a row. */
export function plantPaths(
  tree: GrowingTree,
  paths: readonly CapturedTurn[],
): { readonly turns: readonly PlantedTurn[]; readonly end: Place } {
  const placed = new Map<CapturedTurn, Placed>()
  const planted = new Set<CapturedTurn>()
  const turns: PlantedTurn[] = []
  let end = root
  for (const leaf of paths) {
    const own = turnsTo(leaf).filter(turn => !planted.has(turn))
    const fork = own[0] && forkOf(own[0], [...planted])
    end = makePlanter(tree, placed, lineageOf(fork, end)).plant(leaf, fork)
    own.forEach((captured, index) => {
      planted.add(captured)
      const { from, end: last } = placed.get(captured)!.own!
      const turn = { from, end: last, finish: captured.finish }
      turns.push({ captured, turn, ...(index === 0 && fork && { fork }) })
    })
  }
  return { turns, end }
}

/** Why a path that begins with this turn is not one of those before it; the first needs no reason. */
function forkOf(first: CapturedTurn, before: readonly CapturedTurn[]): Fork | undefined {
  const fork = findCause(before, first)
  if (!fork || first.rewrite === undefined) return fork
  return { ...fork, cause: 'template', reason: first.rewrite }
}

/** The turns whose sampled tokens lie on the path to a turn's end, oldest first. */
function turnsTo(leaf: CapturedTurn): readonly CapturedTurn[] {
  const turns: CapturedTurn[] = []
  let length = Number.POSITIVE_INFINITY
  for (let turn: CapturedTurn | undefined = leaf; turn; turn = turn.base) {
    if (length >= turnLength(turn)) turns.push(turn)
    length = Math.min(length, turn.keep)
  }
  return turns.reverse()
}

/** A path that forked rewrites the place it forked from; others extend. */
function lineageOf(fork: Fork | undefined, of: Place): Lineage {
  if (!fork) return { kind: 'extends' }
  const { cause, reason } = fork
  const by = cause === 'template' ? 'template' : 'agent'
  return { kind: 'rewrites', of, by, reason: `${cause}: ${reason}` }
}

/** Adds the nodes that are new on one path; the first of them has the lineage. */
function makePlanter(
  tree: GrowingTree,
  placed: Map<CapturedTurn, Placed>,
  lineage: Lineage,
): { plant(leaf: CapturedTurn, fork: Fork | undefined): Place } {
  let old: Place | undefined
  let pending: Lineage | undefined = lineage.kind === 'rewrites' ? lineage : undefined
  const entryOf = (turn: CapturedTurn): Placed => {
    const entry = placed.get(turn) ?? {}
    placed.set(turn, entry)
    return entry
  }
  const add = (at: Place, segment: GivenSegment): Place => {
    const place = tree.append(at, segment, pending)
    pending = undefined
    return place
  }

  /** Where the first `tokens` tokens of the path to a turn end. */
  function locate(turn: CapturedTurn | undefined, tokens: number): Place {
    if (!turn || tokens === 0) return root
    // All of its path, which for an empty answer is no longer than its prompt.
    if (tokens >= turnLength(turn)) return plant(turn)
    if (tokens > promptLength(turn)) return placeAt(tree, plant(turn), tokens)
    if (tokens > turn.keep) return placeAt(tree, plantPrompt(turn), tokens)
    return locate(turn.base, tokens)
  }

  function plantPrompt(turn: CapturedTurn): Place {
    const entry = entryOf(turn)
    entry.prompt ??= addPrompt(turn, locate(turn.base, turn.keep))
    return entry.prompt
  }

  function addPrompt(turn: CapturedTurn, at: Place): Place {
    if (turn.given.length === 0) return at
    const isBeginning = !pathTo(tree, at).some(
      ({ node }) => tree.nodes[node]!.segment.origin === 'sampled',
    )
    const images = placesBehind(turn.images, turn.keep)
    const origin = isBeginning ? 'prompt' : 'observed'
    return add(at, given(origin, turn.given, repeatsIn(turn), images))
  }

  /** Which of a rewritten path's tokens repeat the one it was made from. */
  function repeatsIn({ keep, given: ids }: CapturedTurn): GivenSegment['repeats'] {
    if (!old || !pending) return undefined
    return findRepeats(tree, { end: old, path: idsTo(tree, old), keep, ids })
  }

  function plant(turn: CapturedTurn): Place {
    const entry = entryOf(turn)
    entry.own ??= addOwn(turn, plantPrompt(turn))
    return entry.own.end
  }

  function addOwn(turn: CapturedTurn, at: Place): NonNullable<Placed['own']> {
    // If the whole prompt is in the tree already, an empty node carries the lineage.
    let end = pending ? add(at, given('observed', new Int32Array(0))) : at
    const from = tree.nodes.length
    for (const segment of turn.segments) end = tree.append(end, segment)
    return { from, end }
  }

  return {
    plant(leaf, fork) {
      old = fork && fork.cause !== 'conversation' ? placed.get(fork.of)?.own?.end : undefined
      return plant(leaf)
    },
  }
}

/** The last turns of all paths. A cut turn whose request was later answered is left out. */
export function leavesOf(turns: readonly CapturedTurn[]): readonly CapturedTurn[] {
  const continued = new Set(turns.flatMap(turn => turnsTo(turn).slice(0, -1)))
  const leaves = turns.filter(turn => turn.segments.length > 0 && !continued.has(turn))
  return inOrder(leaves.filter(leaf => !leaf.isCut || !isMadeUpFor(leaf, turns)))
}

/** Whether a turn that was cut was asked for again and answered. */
function isMadeUpFor(cut: CapturedTurn, turns: readonly CapturedTurn[]): boolean {
  return turns.some(
    turn =>
      turn !== cut &&
      turn.toolsKey === cut.toolsKey &&
      turn.began >= cut.ended &&
      turn.keys.list.length === cut.keys.list.length &&
      turn.keys.list.every((key, index) => key === cut.keys.list[index]),
  )
}

/**
 * Paths in the order of their last turns. For those that overlapped in time the tokens decide, so
 * that the result does not depend on the order of arrival.
 */
function inOrder(leaves: readonly CapturedTurn[]): readonly CapturedTurn[] {
  const left = [...leaves]
  const ordered: CapturedTurn[] = []
  while (left.length > 0) {
    const earliest = left.filter(leaf => !left.some(other => other.ended < leaf.began))
    const next = earliest.reduce((best, leaf) => (compareTokens(leaf, best) < 0 ? leaf : best))
    left.splice(left.indexOf(next), 1)
    ordered.push(next)
  }
  return ordered
}

function compareTokens(a: CapturedTurn, b: CapturedTurn): number {
  const [left, right] = [a, b].map(turn => turn.tokens.view().subarray(0, turnLength(turn)))
  const most = Math.min(left!.length, right!.length)
  for (let at = 0; at < most; at++) {
    const difference = left![at]! - right![at]!
    if (difference !== 0) return difference
  }
  if (left!.length !== right!.length) return left!.length - right!.length
  return a.tokensKey < b.tokensKey ? -1 : Number(a.tokensKey > b.tokensKey)
}
