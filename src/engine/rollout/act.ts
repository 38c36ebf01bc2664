import { type Bridge, imagesIn, type Message, type Reply } from '@espalier/text'
import { unlessStopped } from '../../base/core/call.ts'
import type { Transition } from '../../base/core/environment.ts'
import { across, acrossNow } from '../../base/core/failure.ts'
import type { Outcome } from '../../base/core/outcome.ts'
import { given } from '../../base/core/segment.ts'
import type { CallRecord } from '../../base/core/tool.ts'
import { placeAt } from '../../base/core/tree.ts'
import { stepWithRecall } from './condensing/recall.ts'
import { takeSummaryEnd } from './condensing/state.ts'
import { admitTransition } from './images/admit.ts'
import { placesBehind, placesIn, sharedTokens } from './images/places.ts'
import { findRepeats } from './repeats.ts'
import {
  addFork,
  extend,
  hear,
  judgeTurn,
  note,
  sampledEnd,
  show,
  stepCall,
  turnBack,
  type Walk,
} from './walk.ts'
import { checkTransition } from './world/said.ts'

/** Lets the world answer a reply and bridges to the next turn. Gives the outcome if it ended. */
export async function act(walk: Walk, reply: Reply): Promise<Outcome | undefined> {
  const reaction = await react(walk, reply)
  if (reaction.kind === 'end') return reaction.outcome
  bridge(walk, reaction.observed)
  return undefined
}

/** The world's reaction to a reply: it ended the attempt, or answered. */
export type Reaction =
  | { readonly kind: 'end'; readonly outcome: Outcome }
  | { readonly kind: 'observed'; readonly observed: readonly Message[] }

/** Lets the world answer a reply; the conversation grows, the path does not yet. */
export async function react(walk: Walk, reply: Reply): Promise<Reaction> {
  const { clock } = walk.context
  const started = clock()
  const answered = await across('environment', walk.attempt, () =>
    unlessStopped(walk.attempt, stepWithRecall(walk, reply, stepCall(walk))),
  )
  checkTransition(answered)
  const transition = showsImages(answered) ? await admitTransition(walk, answered) : answered
  recordSeconds(walk, transition, clock() - started)
  recordStep(walk, transition)
  hear(walk, transition.observed ?? [])
  if (transition.kind === 'continue') return { kind: 'observed', observed: transition.observed }
  const { limit } = transition
  return { kind: 'end', outcome: limit ? { kind: 'truncated', limit } : { kind: 'completed' } }
}

function showsImages({ observed = [], calls = [] }: Transition): boolean {
  return imagesIn(observed).length > 0 || calls.some(({ content }) => content !== undefined)
}

function recordSeconds(walk: Walk, { calls = [] }: Transition, elapsed: number): void {
  const tools = Math.min(elapsed, longest(calls))
  walk.used.seconds.tools += tools
  walk.used.seconds.environment += elapsed - tools
}

/** Calls of one turn run in parallel, so that the turn waited for the slowest of them. */
function longest(calls: readonly CallRecord[]): number {
  return calls.reduce((most, call) => Math.max(most, call.seconds), 0)
}

function recordStep(walk: Walk, transition: Transition): void {
  const { calls = [] } = transition
  judgeTurn(walk, calls, transition)
  for (const call of calls) {
    if (call.problem) note(walk, `tool:${call.problem}`, call.tool)
    if (call.cut) note(walk, 'tool:output-cut', `${call.tool}: ${call.cut} characters`)
  }
}

/** Appends what lies between two samples, or starts the path that the template rewrites. */
function bridge(walk: Walk, observed: readonly Message[]): void {
  const { renderer } = walk.context
  const turn = walk.turns.at(-1)!
  const turnStart = walk.tree.nodes[turn.from]!.start
  const between = acrossNow('renderer', walk.attempt, () =>
    renderer.bridge({
      path: walk.tokens.view(),
      turnStart,
      messages: walk.shown,
      observed: observed.length,
      tools: walk.tree.tools,
    }),
  )
  if (between.kind === 'rewrites') rewrite(walk, between, 'template')
  else extend(walk, given('observed', between.ids, undefined, seenIn(walk, between.ids, observed)))
}

function seenIn(walk: Walk, ids: Int32Array, messages: readonly Message[]) {
  const { renderer } = walk.context
  if (!renderer.images) return []
  return acrossNow('renderer', walk.attempt, () => placesIn(renderer, ids, messages))
}

/** Starts a new path on which the policy is shown these messages instead of what it saw before. */
export function showInstead(
  walk: Walk,
  messages: readonly Message[],
  change: { readonly by: string; readonly reason: string },
): void {
  const { renderer } = walk.context
  const { by, reason } = change
  const ids = acrossNow('renderer', walk.attempt, () => renderer.render(messages, walk.tree.tools))
  const keep = commonLength(walk.tokens.view(), ids)
  show(walk, messages, by)
  rewrite(walk, { kind: 'rewrites', keep, ids: ids.subarray(keep), reason }, by)
}

/** How many tokens two contexts share; the second keeps at least one of its own. */
export function commonLength(a: Int32Array, b: Int32Array): number {
  const most = Math.min(a.length, b.length - 1)
  let length = 0
  while (length < most && a[length] === b[length]) length++
  return length
}

type Change = Extract<Bridge, { kind: 'rewrites' }>

/** Starts a new path that keeps the first tokens of the old one and says what it replaces, and why. */
export function rewrite(walk: Walk, change: Change, by: string): void {
  const { tree, place: old } = walk
  const { reason } = change
  const { keep, ids, images } = withImages(walk, change)
  const repeats = findRepeats(tree, { end: old, path: walk.tokens.view(), keep, ids })
  const segment = given('observed', ids, repeats, images)
  const of = takeSummaryEnd(walk.condensing) ?? sampledEnd(walk)
  const lineage = { kind: 'rewrites', of, by, reason } as const
  turnBack(walk, { place: placeAt(tree, old, keep), keep }, { segment, lineage })
  addFork(walk, { at: keep, reason })
  note(walk, `rewrite:${by}`, reason)
}

/** A change of a path with the images that it shows: other images are other tokens, though they look the same. */
function withImages(walk: Walk, { keep, ids }: Pick<Change, 'keep' | 'ids'>) {
  if (walk.images.length === 0 && imagesIn(walk.shown).length === 0)
    return { keep, ids, images: [] }
  const whole = new Int32Array(keep + ids.length)
  whole.set(walk.tokens.view().subarray(0, keep))
  whole.set(ids, keep)
  const now = seenIn(walk, whole, walk.shown)
  const kept = sharedTokens({ old: walk.images, now, keep })
  return { keep: kept, ids: whole.subarray(kept), images: placesBehind(now, kept) }
}
