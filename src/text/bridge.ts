import type { BridgeRequest } from '../core/renderer.ts'
import { endOfProbe, type Profile, probePrefix } from './calibration.ts'
import type { Chat, ChatText } from './chat.ts'
import type { Tokenizer } from './tokenizer.ts'

/** What computing a bridge needs. */
export interface BridgeContext {
  readonly chat: Chat
  readonly profile: Profile
  readonly tokenizer: Tokenizer
  readonly stopIds: readonly number[]
  readonly closerIds: ReadonlySet<number>
}

/**
 * What follows a sampled turn, as text from the turn's last word on: its closer, the observed
 * messages, the next turn's opening. It is cut from a rendering behind a synthetic beginning, so
 * that its cost does not depend on the history and nothing earlier can change it.
 */
export function bridgeText(context: BridgeContext, request: BridgeRequest): ChatText {
  const { chat, profile } = context
  const observed = request.messages.slice(request.messages.length - request.observed)
  const tools = profile.bridgeNeedsTools ? request.tools : []
  const messages = [...probePrefix(observed), ...observed]
  const { text, foreign } = chat.render({ messages, tools, opensTurn: true })
  const hasCalls = observed.some(message => message.role === 'tool')
  const tail = hasCalls ? profile.callTail : profile.contentTail
  const end = endOfProbe(text, hasCalls)
  if (tail === undefined || end < 0 || !text.startsWith(tail, end)) {
    const what = hasCalls ? 'tool results' : 'what was observed'
    throw new Error(
      `the chat template does not show where ${what} begin after a turn; \`espalier doctor\` says more`,
    )
  }
  const start = end + tail.length
  return { text: text.slice(start), foreign: shift(foreign, start) }
}

/** Ranges after a cut at `start`. */
export function shift(
  ranges: ChatText['foreign'],
  start: number,
): readonly (readonly [number, number])[] {
  return ranges
    .filter(([, end]) => end > start)
    .map(([from, end]) => [Math.max(0, from - start), end - start] as const)
}

/** The tokens that follow a sampled turn: what it sampled itself is neither repeated nor left out. */
export function bridgeIds(context: BridgeContext, request: BridgeRequest): Int32Array {
  const { tokenizer, stopIds, closerIds } = context
  const { text, foreign } = bridgeText(context, request)
  const ids = tokenizer.encode(text, { foreign })
  const last = request.path.length > request.turnStart ? request.path.at(-1)! : -1
  if (!stopIds.includes(last)) return ids
  const first = ids[0]
  return first !== undefined && (first === last || closerIds.has(first)) ? ids.subarray(1) : ids
}
