import type { Message } from '@espalier/text'
import { acrossNow } from '../../../base/core/failure.ts'
import { given } from '../../../base/core/segment.ts'
import type { SpeakCall, Speaker, Speech } from '../../../base/core/speaker.ts'
import { placeAt, plantTree, root } from '../../../base/core/tree.ts'
import { commonLength } from '../act.ts'
import { placesBehind, placesIn, sharedTokens } from '../images/places.ts'
import { findRepeats } from '../repeats.ts'
import { isTooLong, sampleSegments } from '../sample-turn.ts'
import { makeTokenBuffer } from '../token-buffer.ts'
import { addFork, markReencoded, note, sampledEnd, type Walk } from '../walk.ts'

/**
 * The walk's own policy as a speaker. Its words are sampled like all others, on a separate path that
 * the walk's next path replaces, so that they are trained with the trajectory.
 */
export function selfSpeaker(walk: Walk, isTrained: boolean): Speaker {
  // One after the other, so that the n-th request is the n-th path, however long each takes.
  let last: Promise<unknown> = Promise.resolve()
  return {
    name: walk.context.policy.name,
    say(messages, call) {
      const said = last.then(() => sayAside(walk, messages, { ...call, isTrained }))
      last = said.catch(() => {})
      return said
    },
  }
}

async function sayAside(
  walk: Walk,
  messages: readonly Message[],
  call: SpeakCall & { readonly isTrained: boolean },
): Promise<Speech> {
  const { context, attempt } = walk
  const { renderer } = context
  call.signal.throwIfAborted()
  const ids = acrossNow('renderer', attempt, () => renderer.render(messages, walk.tree.tools))
  const room = roomFor(walk, ids.length, call.maxTokens)
  if (room <= 0) {
    throw new Error(
      `no room to summarise: the prompt takes ${ids.length} of ${context.limits.context} tokens`,
    )
  }
  const own = stepAside(walk, { ids, messages, isTrained: call.isTrained })
  const start = own.tokens.length
  const { finish, text } = await sampleSegments(own, room).catch(refuseTooLong)
  const sampled = own.tokens.length - start
  takeOver(walk, own, call.isTrained)
  const figures = { prompt: ids.length, sampled }
  note(walk, 'summary', { detail: `${ids.length} tokens read, ${sampled} sampled`, figures })
  const turn = walk.turns.length
  const message =
    text?.message ?? renderer.parse(own.tokens.view(start), own.tree.tools, turn).message
  return { message, finish: finish.kind === 'stop' ? 'stop' : 'length', usage: figures }
}

/** A summary that the policy has no room for is the condenser's to deal with, as where a limit leaves none. */
function refuseTooLong(error: unknown): never {
  throw isTooLong(error) ? new Error(`no room to summarise: ${error.message}`) : error
}

/** How many tokens a summary may have, by the context and the tokens that are left. */
function roomFor({ context, used }: Walk, prompt: number, wanted = 1024): number {
  const { limits } = context
  return Math.min(wanted, limits.newTokens, limits.context - prompt, limits.tokens - used.sampled)
}

const reason = 'the policy summarises'

/** A separate walk that shares as much of the path as it can, and keeps only what summarising needs. */
function stepAside(
  walk: Walk,
  asked: {
    readonly ids: Int32Array
    readonly messages: readonly Message[]
    readonly isTrained: boolean
  },
): Walk & { readonly keep: number } {
  const { ids, messages, isTrained } = asked
  const summaries = walk.events.filter(({ kind }) => kind === 'summary').length
  const tree = isTrained ? walk.tree : plantTree(walk.tree)
  const now = placesIn(walk.context.renderer, ids, messages)
  const common = isTrained ? commonLength(walk.tokens.view(), ids) : 0
  const keep = sharedTokens({ old: walk.images, now, keep: common })
  const of = isTrained ? (walk.condensing?.summaryEnd ?? sampledEnd(walk)) : root
  const more = ids.subarray(keep)
  const path = { end: walk.place, path: walk.tokens.view(), keep, ids: more }
  const place = tree.append(
    isTrained ? placeAt(tree, walk.place, keep) : root,
    given('observed', more, isTrained ? findRepeats(tree, path) : [], placesBehind(now, keep)),
    { kind: 'rewrites', of, by: 'condenser', reason },
  )
  return {
    ...walk,
    keep,
    tree,
    place,
    tokens: makeTokenBuffer(ids),
    images: now,
    shown: [...messages],
    branch: `${walk.branch}/summary${summaries}`,
    next: { ...walk.next },
  }
}

function takeOver(walk: Walk, own: ReturnType<typeof stepAside>, isTrained: boolean): void {
  if (!isTrained) return
  if (own.isReencoded) markReencoded(walk)
  if (walk.condensing) walk.condensing.summaryEnd = own.place
  addFork(walk, { at: own.keep, reason })
}
