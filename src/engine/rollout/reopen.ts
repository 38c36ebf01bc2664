import type { Message } from '@espalier/text'
import type { Condensing } from '../../base/core/condenser.ts'
import type { World } from '../../base/core/environment.ts'
import { acrossNow } from '../../base/core/failure.ts'
import { trajectoryId } from '../../base/core/ids.ts'
import { imagesTo } from '../../base/core/image.ts'
import type { Outcome } from '../../base/core/outcome.ts'
import { given, type Segment } from '../../base/core/segment.ts'
import type { Trajectory } from '../../base/core/trajectory.ts'
import {
  type GrowingTree,
  idsTo,
  type Place,
  pathEnds,
  pathTo,
  type Tree,
} from '../../base/core/tree.ts'
import { act } from './act.ts'
import type { Attempt, RolloutContext } from './attempt.ts'
import { lookedBefore } from './condensing/state.ts'
import { closeWalk, type Ending, outcomeOf } from './end-walk.ts'
import { copyWalk } from './fork-walk.ts'
import { takeBegun } from './next-turn.ts'
import { sharesOf } from './shares.ts'
import { drawTogether } from './siblings.ts'
import { makeTokenBuffer } from './token-buffer.ts'
import { addTurn, emptyWalk, endOpening, extend, hear, note, type Walk } from './walk.ts'

/** A trajectory that ended, and where it is taken up again. */
export interface Reopening {
  readonly tree: Tree
  readonly trajectory: Trajectory
  /** The turn that is sampled anew. */
  readonly turn: number
  /** The start of that turn, or a place inside it. */
  readonly place: Place
  /** Put behind that place before the policy goes on: the policy observes it, and is not trained on it. */
  readonly edit?: Int32Array
}

/** What a reopened walk needs. */
export interface ReopenParts {
  readonly world: World
  readonly of: Reopening
  readonly branch: string
  /** Its condenser, with the memory of what was condensed; without it nothing more is condensed. */
  readonly condensing?: Condensing
}

/**
 * A walk in a new tree at a place of an ended one, in a world brought to that place. Everything before
 * it counts as observed, so nothing is trained again.
 */
export function reopenWalk(context: RolloutContext, attempt: Attempt, parts: ReopenParts): Walk {
  const { of, branch } = parts
  const { trajectory, turn, place, edit } = of
  const walk = emptyAgain(context, attempt, parts)
  const numbers = copyPaths(of.tree, place, walk.tree)
  const there = (old: Place): Place => ({ ...old, node: numbers.get(old.node)! })
  const begun = trajectory.turns[turn]!
  const start = of.tree.nodes[begun.from]!.parent
  const isInside = place.node !== start.node || place.offset !== start.offset
  const views = (trajectory.views ?? []).filter(view => view.turn <= turn)
  const reopened: Walk = {
    ...walk,
    branch,
    place: there(place),
    tokens: makeTokenBuffer(idsTo(of.tree, place)),
    images: imagesTo(of.tree, place),
    messages: trajectory.messages.slice(0, begun.messages),
    shown: shownAt(trajectory, turn),
    views,
    turns: trajectory.turns.slice(0, turn).map(each => ({
      ...each,
      from: numbers.get(each.from)!,
      end: there(each.end),
    })),
    calls: trajectory.calls.filter(call => call.turn < turn),
    forks: trajectory.fidelity.forks.slice(0, pathEnds(of.tree, place).length - 1),
    // The condensed context before this turn is shown already.
    ...(walk.condensing && { condensing: lookedBefore(walk.condensing, turn) }),
    isReencoded: trajectory.fidelity.kind === 're-encoded',
    next: isInside ? { begun: numbers.get(begun.from)! } : {},
  }
  note(reopened, 'reopened', `${trajectory.id} at turn ${turn}, token ${reopened.tokens.length}`)
  endOpening(reopened)
  if (edit && edit.length > 0) putEdit(reopened, edit)
  return reopened
}

/** An empty walk that offers the policy the tools it was offered then. */
function emptyAgain(
  { condense, ...plain }: RolloutContext,
  attempt: Attempt,
  { world, of, condensing }: ReopenParts,
): Walk {
  const { tools } = of.tree
  if (!condense || !condensing) return emptyWalk(plain, attempt, { world: { ...world, tools } })
  const recall = condensing.recall?.definition.function.name
  const own = tools.filter(tool => tool.function.name !== recall)
  return emptyWalk({ ...plain, condense }, attempt, { world: { ...world, tools: own }, condensing })
}

function putEdit(walk: Walk, edit: Int32Array): void {
  extend(walk, given('observed', edit))
  walk.next.begun ??= walk.place.node
}

/** What the policy was shown before a turn. */
function shownAt({ views = [], messages, turns }: Trajectory, turn: number): Message[] {
  const view = views.findLast(each => each.turn <= turn)
  return [...(view?.shown ?? []), ...messages.slice(view?.from ?? 0, turns[turn]!.messages)]
}

/** Copies the paths to a place into another tree; what was sampled is observed there. */
function copyPaths(from: Tree, place: Place, to: GrowingTree): ReadonlyMap<number, number> {
  const lengths = new Map<number, number>()
  for (const end of pathEnds(from, place)) {
    for (const { node, length } of pathTo(from, end)) {
      lengths.set(node, Math.max(length, lengths.get(node) ?? 0))
    }
  }
  const numbers = new Map([[0, 0]])
  const there = (old: Place): Place => ({ ...old, node: numbers.get(old.node)! })
  for (const [node, length] of [...lengths].sort(([one], [other]) => one - other)) {
    const { segment, parent, lineage } = from.nodes[node]!
    const copied = lineage.kind === 'rewrites' ? { ...lineage, of: there(lineage.of) } : lineage
    numbers.set(node, to.append(there(parent), asGiven(segment, length), copied).node)
  }
  return numbers
}

function asGiven({ origin, ids, images = [] }: Segment, length: number): Segment {
  const whole = images.filter(({ end }) => end <= length)
  const as = origin === 'prompt' ? 'prompt' : 'observed'
  return given(as, ids.subarray(0, length), undefined, whole)
}

/** Another walk from where this one stands, in a world that was brought there too. */
export function walkBeside(walk: Walk, world: World, branch: string): Walk {
  const beside = copyWalk(walk, { branch, world: { ...world, tools: walk.tree.tools } })
  const { begun } = walk.next
  return begun === undefined ? beside : { ...beside, next: { begun } }
}

/**
 * Rolls several walks from one place of a tree to their ends; their first samples are drawn together.
 * The tree's endings are in the order of the walks.
 */
export async function continueWalks(
  walks: readonly Walk[],
  toEnd: (walk: Walk) => Promise<Outcome>,
): Promise<Tree> {
  const { tree } = walks[0]!
  const isWhole = endsTurn(walks[0]!)
  if (!isWhole) drawTogether(walks)
  const endings = await Promise.all(
    walks.map(async walk => await closeWalk(walk, await goOn(walk, { isWhole, toEnd }))),
  )
  endAll(tree, endings)
  return tree
}

function endAll(tree: GrowingTree, endings: readonly Ending[]): void {
  const shares = sharesOf(
    tree,
    endings.map(({ end }) => end),
  )
  endings.forEach((ending, index) => {
    tree.end({ ...ending, id: trajectoryId(tree.id, index), share: shares[index]! })
  })
}

async function goOn(
  walk: Walk,
  how: { readonly isWhole: boolean; readonly toEnd: (walk: Walk) => Promise<Outcome> },
): Promise<Outcome> {
  try {
    return (await (how.isWhole ? takeEdit(walk) : undefined)) ?? (await how.toEnd(walk))
  } catch (error) {
    return outcomeOf(error, walk.attempt.signal)
  }
}

/** Whether an edit completed a turn, by ending with a stop token. */
function endsTurn({ next, tokens, context }: Walk): boolean {
  return next.begun !== undefined && context.renderer.stopIds.includes(tokens.view().at(-1)!)
}

/** Lets the world answer a turn that was edited in, not sampled. */
async function takeEdit(walk: Walk): Promise<Outcome | undefined> {
  const from = takeBegun(walk.next)!
  const { renderer } = walk.context
  const turn = walk.turns.length
  addTurn(walk, { from, finish: { kind: 'stop' } })
  const ids = walk.tokens.view(walk.tree.nodes[from]!.start)
  const reply = acrossNow('renderer', walk.attempt, () =>
    renderer.parse(ids, walk.tree.tools, turn),
  )
  hear(walk, [reply.message])
  return await act(walk, reply)
}
