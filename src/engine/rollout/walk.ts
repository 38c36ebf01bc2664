import type { Message } from '@espalier/text'
import type { Condensing } from '../../base/core/condenser.ts'
import type { StepCall, Transition, World } from '../../base/core/environment.ts'
import { describeCause } from '../../base/core/failure.ts'
import { treeId } from '../../base/core/ids.ts'
import { type ImagePlace, moved } from '../../base/core/image.ts'
import type { Segment } from '../../base/core/segment.ts'
import type { CallRecord } from '../../base/core/tool.ts'
import type { Fork, TrajectoryEvent, Turn, View } from '../../base/core/trajectory.ts'
import {
  type GrowingTree,
  type Lineage,
  type Place,
  plantTree,
  root,
} from '../../base/core/tree.ts'
import { seedOf } from '../../base/math/random.ts'
import type { Attempt, RolloutContext } from './attempt.ts'
import { type CondensingState, makeCondensingState } from './condensing/state.ts'
import type { NextTurn } from './next-turn.ts'
import { makeTokenBuffer, type TokenBuffer } from './token-buffer.ts'

/** A walk as this file sees it: other files change it only through the functions below. */
interface GrowingWalk {
  readonly context: RolloutContext
  readonly attempt: Attempt
  readonly tree: GrowingTree
  readonly world: World
  /** '' on a tree's first path; a fork adds its number. */
  readonly branch: string
  place: Place
  tokens: TokenBuffer
  /** The images on its path, in the order of their tokens. */
  images: readonly ImagePlace[]
  /** The whole conversation. */
  messages: Message[]
  /** What the policy is shown of it: all, unless something was condensed or left out. */
  shown: Message[]
  /** From a turn on, other messages are shown: those of the view, then the conversation from number `from` on. */
  views: View[]
  turns: Turn[]
  calls: CallRecord[]
  events: TrajectoryEvent[]
  /** How many of the events happened before the first turn. */
  openingEvents: number
  forks: Fork[]
  isReencoded: boolean
  /** What this path used; shared with the paths on which its policy summarises. */
  readonly used: Used
  /** Set if something condenses this attempt's context. */
  readonly condensing?: CondensingState
  readonly next: NextTurn
}

/** One path of a tree while it grows; the loops of all strategies advance it. */
export type Walk = {
  readonly [Key in keyof GrowingWalk]: GrowingWalk[Key] extends (infer Item)[]
    ? readonly Item[]
    : GrowingWalk[Key]
}

/** What a path used. */
export interface Used {
  readonly seconds: { policy: number; tools: number; environment: number; reward: number }
  readonly servers: Set<string>
  sampled: number
  prompted: number
  cached: number
}

/** Nothing used yet. */
export function nothingUsed(): Used {
  const seconds = { policy: 0, tools: 0, environment: 0, reward: 0 }
  return { seconds, servers: new Set(), sampled: 0, prompted: 0, cached: 0 }
}

const growing = (walk: Walk): GrowingWalk => walk as GrowingWalk

/** A 31-bit seed for one draw of an attempt; it depends on what the draw is for, never on when it happens. */
export function seedFor(attempt: Attempt, ...parts: readonly (string | number)[]): number {
  const { seed, task, member } = attempt
  return seedOf(seed, task.id, member, ...parts).low >>> 1
}

/** What a walk begins with. */
export interface WalkOptions {
  readonly world?: World
  readonly condensing?: Condensing
  /** @default '' */
  readonly branch?: string
  /** @default none */
  readonly tokens?: TokenBuffer
  /** The images among them. @default none */
  readonly images?: readonly ImagePlace[]
  /** What the policy is shown. @default nothing */
  readonly shown?: Message[]
}

/** A walk that has not begun, for attempts whose world never opened. */
export function emptyWalk(
  context: RolloutContext,
  attempt: Attempt,
  given: WalkOptions = {},
): Walk {
  const { world, condensing } = given
  const { renderer, sampling } = context
  const recall = condensing?.recall
  const tree = plantTree({
    id: treeId(attempt.group, attempt.member),
    task: attempt.task.id,
    member: attempt.member,
    seed: attempt.seed,
    sampling,
    tools: context.shared.tools.same([
      ...(world?.tools ?? []),
      ...(recall ? [recall.definition] : []),
    ]),
    renderer: `${renderer.name} (${renderer.history})`,
  })
  const walk: Walk = {
    context,
    attempt,
    tree,
    world: world ?? nowhere,
    branch: given.branch ?? '',
    place: root,
    tokens: given.tokens ?? makeTokenBuffer(new Int32Array(0)),
    images: given.images ?? [],
    messages: [],
    shown: given.shown ?? [],
    views: [],
    turns: [],
    calls: [],
    events: [],
    openingEvents: 0,
    forks: [],
    isReencoded: false,
    used: nothingUsed(),
    next: {},
  }
  return condensing ? { ...walk, condensing: makeCondensingState(condensing) } : walk
}

/** The world of attempts whose world never opened. */
const nowhere: World = {
  opening: [{ role: 'user', content: '' }],
  tools: [],
  step: () => Promise.reject(new Error('this attempt has no world')),
  [Symbol.asyncDispose]: () => Promise.resolve(),
}

/** The call that a world's step is given. */
export function stepCall(walk: Walk): StepCall {
  return { signal: walk.attempt.signal, messages: walk.messages, turn: walk.turns.length - 1 }
}

/** Adds messages to the conversation and to what the policy is shown of it. */
export function hear(walk: Walk, messages: readonly Message[]): void {
  growing(walk).messages.push(...messages)
  growing(walk).shown.push(...messages)
}

/** Shows the policy these messages instead of the conversation so far. */
export function show(
  walk: Walk,
  shown: readonly Message[],
  by?: View['by'],
  examples?: View['examples'],
): void {
  growing(walk).shown = [...shown]
  if (by === undefined) return
  const { turns, messages } = walk
  const view = { turn: turns.length, by, shown, from: messages.length }
  growing(walk).views.push(examples ? { ...view, examples } : view)
}

/** Appends tokens to the path. */
export function extend(walk: Walk, segment: Segment, lineage?: Lineage): void {
  growing(walk).place = walk.tree.append(walk.place, segment, lineage)
  if (segment.images) showImages(walk, segment.images)
  walk.tokens.append(segment.ids)
}

/** Adds the images of tokens that come next. */
function showImages(walk: Walk, images: readonly ImagePlace[]): void {
  const added = images.map(image => moved(image, walk.tokens.length))
  growing(walk).images = [...walk.images, ...added]
}

/** Goes on from an earlier place of the path, with other tokens behind its first `keep`. */
export function turnBack(
  walk: Walk,
  to: { readonly place: Place; readonly keep: number },
  replacement: { readonly segment: Segment; readonly lineage: Lineage },
): void {
  growing(walk).place = to.place
  growing(walk).tokens = walk.tokens.fork(to.keep)
  growing(walk).images = walk.images.filter(({ end }) => end <= to.keep)
  extend(walk, replacement.segment, replacement.lineage)
}

/** Ends the path with its last sample: the policy did not take what was observed after it. */
export function leaveUnseen(walk: Walk): void {
  growing(walk).place = sampledEnd(walk)
}

/** Records a fork of the path. */
export function addFork(walk: Walk, fork: Fork): void {
  growing(walk).forks.push(fork)
}

/** Adds a turn, sampled or edited in, that ends where the walk is. */
export function addTurn(walk: Walk, turn: Pick<Turn, 'from' | 'finish'>): void {
  const { from, finish } = turn
  const { place: end, messages } = walk
  // Written out: Node 20 takes microseconds for a literal that spreads first and goes on.
  growing(walk).turns.push({ from, finish, end, messages: messages.length })
}

/** Adds the world's verdict on the last turn: its calls and its reward. */
export function judgeTurn(
  walk: Walk,
  calls: readonly CallRecord[],
  { reward, anchor }: Pick<Transition, 'reward' | 'anchor'>,
): void {
  growing(walk).calls.push(...calls)
  if (reward === undefined && anchor === undefined) return
  const last = walk.turns.length - 1
  growing(walk).turns[last] = {
    ...walk.turns[last]!,
    ...(reward !== undefined && { reward }),
    ...(anchor !== undefined && { anchor }),
  }
}

/** Marks the events so far as belonging to the opening: walks that go back keep them. */
export function endOpening(walk: Walk): void {
  growing(walk).openingEvents = walk.events.length
}

/** Marks that some tokens were encoded from text, because the server gave no ids. */
export function markReencoded(walk: Walk): void {
  growing(walk).isReencoded = true
}

/** Records an event of a walk. */
export function note(
  walk: Walk,
  kind: string,
  what: string | Pick<TrajectoryEvent, 'detail' | 'figures'>,
): void {
  const turn = Math.max(0, walk.turns.length - 1)
  const detail = typeof what === 'string' ? { detail: what } : what
  growing(walk).events.push({ kind, turn, ...detail })
}

/** Records that a world could not be disposed of, whatever it threw. */
export function noteDisposal(walk: Walk, cause: unknown): void {
  note(walk, 'dispose-failed', cause instanceof Error ? String(cause) : describeCause(cause))
}

/**
 * The end of the last sample on a walk's path. Observations after it were never sampled from, and
 * belong to no row if the walk goes on elsewhere.
 */
export function sampledEnd({ tree, place }: Walk): Place {
  let end = place
  for (;;) {
    const { segment, parent, lineage } = tree.nodes[end.node]!
    if (segment.origin === 'sampled') return end
    if (end.node === 0 || lineage.kind === 'rewrites') return place
    end = parent
  }
}

/** The opening as the policy is shown it. */
export function openingShown({ views, messages, turns }: Walk): readonly Message[] {
  const view = views.findLast(({ turn }) => turn === 0)
  return view?.shown ?? messages.slice(0, turns[0]?.messages ?? messages.length)
}
