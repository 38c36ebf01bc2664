import type { Condensing } from '../core/condenser.ts'
import type { StepCall, World } from '../core/environment.ts'
import { across, describeCause, Failure } from '../core/failure.ts'
import { type Json, trajectoryId, treeId } from '../core/ids.ts'
import type { Message } from '../core/message.ts'
import { isGradableOutcome, type Outcome } from '../core/outcome.ts'
import type { Sample } from '../core/policy.ts'
import type { CallRecord } from '../core/tool.ts'
import type { Fork, Trajectory, TrajectoryEvent, Turn, View } from '../core/trajectory.ts'
import { type GrowingTree, type Place, plantTree, root } from '../core/tree.ts'
import { seedOf } from '../math/random.ts'
import type { Attempt, RolloutContext } from './attempt.ts'
import { openTokenBuffer, type TokenBuffer } from './token-buffer.ts'

/** One path of a tree while it is walked: what the loops of all strategies move forward. */
export interface Walk {
  readonly context: RolloutContext
  readonly attempt: Attempt
  readonly tree: GrowingTree
  readonly world: World
  /** '' on a tree's first path; a fork adds its number. */
  readonly branch: string
  place: Place
  tokens: TokenBuffer
  /** What condenses this attempt's context, where something does. */
  readonly condensing?: Condensing
  /** The last turn before which the context was looked at, and when that is done. */
  condensed?: { readonly turn: number; readonly done: Promise<void> }
  /** The fewest tokens with which condensing is tried again after it did not help. */
  condenseFrom: number
  /** The end of a path on which the policy summarised, until the path that replaces it begins. */
  aside?: Place
  /** The first sampled node of a turn that was begun elsewhere and goes on here. */
  begun?: number
  /** A sample that was drawn together with its siblings' and is still to be taken. */
  drawn?: Promise<Sample>
  /** Everything that was said. */
  readonly messages: Message[]
  /** What the policy is shown of it: all, unless something was condensed or left out. */
  shown: Message[]
  /** From which turn on something else was shown: these messages, then all from number `from` on. */
  readonly views: View[]
  readonly turns: Turn[]
  readonly calls: CallRecord[]
  readonly events: TrajectoryEvent[]
  /** How many of the events happened before the first turn. */
  openingEvents: number
  readonly forks: Fork[]
  readonly seconds: { policy: number; tools: number; environment: number; reward: number }
  readonly servers: Set<string>
  sampled: number
  prompted: number
  cached: number
  isReencoded: boolean
}

/** A 31-bit seed for one draw of an attempt: a function of what it is for, never of when it happens. */
export function seedFor(attempt: Attempt, ...parts: readonly (string | number)[]): number {
  const { seed, task, member } = attempt
  return seedOf(seed, task.id, member, ...parts).low >>> 1
}

/** A walk that has not begun, for attempts whose world never opened. */
export function emptyWalk(
  context: RolloutContext,
  attempt: Attempt,
  { world, condensing }: { readonly world?: World; readonly condensing?: Condensing } = {},
): Walk {
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
  return {
    context,
    attempt,
    tree,
    world: world ?? nowhere,
    ...(condensing && { condensing }),
    condenseFrom: 0,
    branch: '',
    place: root,
    tokens: openTokenBuffer(new Int32Array(0)),
    messages: [],
    shown: [],
    views: [],
    turns: [],
    calls: [],
    events: [],
    openingEvents: 0,
    forks: [],
    seconds: { policy: 0, tools: 0, environment: 0, reward: 0 },
    servers: new Set(),
    sampled: 0,
    prompted: 0,
    cached: 0,
    isReencoded: false,
  }
}

/** The world of attempts that never got one. */
const nowhere: World = {
  opening: [{ role: 'user', content: '' }],
  tools: [],
  step: () => Promise.reject(new Error('this attempt has no world')),
  [Symbol.asyncDispose]: () => Promise.resolve(),
}

/** How an attempt ended, before it is known how many others share its tree. */
export type Ending = Omit<Trajectory, 'id' | 'share'>

/** Ends the only walk of a tree. */
export async function endWalk(walk: Walk, outcome: Outcome): Promise<Trajectory> {
  const ending = await closeWalk(walk, outcome)
  const trajectory = {
    ...ending,
    id: trajectoryId(walk.tree.id, walk.tree.trajectories.length),
    share: 1,
  }
  walk.tree.end(trajectory)
  return trajectory
}

/** Closes a walk. Worlds report at every gradable end, before anybody disposes of them. */
export async function closeWalk(walk: Walk, outcome: Outcome): Promise<Ending> {
  const { attempt, world } = walk
  let report: Json | undefined
  let final = outcome
  if (isGradableOutcome(outcome) && world.report) {
    try {
      report = await across('environment', attempt, () => world.report!())
    } catch (error) {
      final = outcomeOf(error, attempt.signal)
    }
  }
  return {
    end: endOf(walk),
    outcome: final,
    turns: walk.turns,
    messages: walk.messages,
    ...condensedViews(walk),
    calls: walk.calls,
    ...(report !== undefined && { report }),
    fidelity: { kind: fidelityOf(walk), forks: walk.forks },
    usage: { sampled: walk.sampled, prompt: walk.prompted },
    events: walk.events,
    volatile: { seconds: walk.seconds, cached: walk.cached, servers: [...walk.servers].sort() },
  }
}

/** An observation that does not fit the context was never seen by the policy: it is in no row. */
function endOf(walk: Walk): Place {
  return walk.tokens.length > walk.context.limits.context ? sampledEnd(walk) : walk.place
}

/** Only what was condensed is kept: what a step shows follows from the conversation. */
function condensedViews({ views }: Walk): Pick<Trajectory, 'views'> {
  const condensed = views.filter(({ by }) => by === 'condenser')
  return condensed.length > 0 ? { views: condensed } : {}
}

function fidelityOf(walk: Walk): Trajectory['fidelity']['kind'] {
  if (walk.isReencoded) return 're-encoded'
  return walk.forks.length > 0 ? 'forked' : 'exact'
}

/** What an error that ended a walk is, as data. */
export function outcomeOf(error: unknown, signal: AbortSignal): Outcome {
  if (signal.aborted) return stopOf(signal.reason)
  if (error instanceof Failure) {
    return { kind: 'failed', boundary: error.boundary, message: error.message }
  }
  throw error
}

/** Aborting an attempt with this reason truncates it: its time was up. */
export class TimeIsUp extends Error {
  override name = 'TimeIsUp'
}

function stopOf(reason: unknown): Outcome {
  if (reason instanceof TimeIsUp) return { kind: 'truncated', limit: 'time' }
  return { kind: 'aborted', by: describeCause(reason) }
}

/** The call that a world's step is given. */
export function stepCall(walk: Walk): StepCall {
  return { signal: walk.attempt.signal, messages: walk.messages, turn: walk.turns.length - 1 }
}

/** Adds messages to the conversation and to what the policy is shown of it. */
export function hear(walk: Walk, messages: readonly Message[]): void {
  walk.messages.push(...messages)
  walk.shown.push(...messages)
}

/**
 * The end of what a walk sampled on its path. What was observed after it was never sampled from,
 * and belongs to no row where the walk goes on elsewhere.
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
  const condensed = views.findLast(({ turn, by }) => turn === 0 && by === 'condenser')
  return condensed?.shown ?? messages.slice(0, turns[0]?.messages ?? messages.length)
}

/** Counts something that happened on a walk. */
export function note(
  walk: Walk,
  kind: string,
  what: string | Pick<TrajectoryEvent, 'detail' | 'figures'>,
): void {
  const turn = Math.max(0, walk.turns.length - 1)
  walk.events.push({ kind, turn, ...(typeof what === 'string' ? { detail: what } : what) })
}
