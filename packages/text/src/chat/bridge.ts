import type { AssistantMessage, Message, ToolMessage } from '../message.ts'
import type { BridgeRequest } from '../renderer.ts'
import type { Tokenizer } from '../tokenizers/tokenizer.ts'
import type { Profile } from './calibration/calibration.ts'
import { type Ending, markOf } from './calibration/ending.ts'
import {
  asked,
  callingTurn,
  callsOf,
  contentMark,
  lastProbeId,
  spokenTurn,
} from './calibration/probe.ts'
import type { Chat, ChatText } from './chat.ts'
import { completeCalls } from './complete-calls.ts'
import { shift } from './ranges.ts'

/** What computing a bridge needs. */
export interface BridgeContext {
  readonly chat: Chat
  readonly profile: Profile
  readonly tokenizer: Tokenizer
  /** The ids that end an assistant turn. */
  readonly stopIds: readonly number[]
}

/** The synthetic turn behind which a bridge is computed, and how its end is found. */
export interface Anchor {
  readonly before: readonly Message[]
  readonly mark: string
  /** What belongs to the turn behind its mark. */
  readonly tail: string
  readonly ending: Ending
}

/** The tokens that follow a sampled turn: what it sampled itself is neither repeated nor left out. */
export function bridgeIds(context: BridgeContext, request: BridgeRequest): Int32Array {
  const observed = observedOf(request)
  const anchor = anchorOf(context.profile, observed, request)
  const bridge = bridgeText(context, request, { observed, anchor })
  if (anchor.ending.stop === '') return encodeBehindText(context, request, bridge)
  const ids = context.tokenizer.encode(bridge.text, { foreign: bridge.foreign })
  return withoutSampled(context, request, { ids, ending: anchor.ending })
}

/** The messages that a bridge leads over. */
export function observedOf({ messages, observed }: BridgeRequest): readonly Message[] {
  return messages.slice(messages.length - observed)
}

/** A bridge without the stop token at its beginning, if the policy has sampled that itself. */
export function withoutSampled(
  { tokenizer, stopIds }: BridgeContext,
  { path, turnStart }: BridgeRequest,
  { ids, ending }: { readonly ids: Int32Array; readonly ending: Ending },
): Int32Array {
  const stopId = tokenizer.idOf(ending.stop)
  const last = path.length > turnStart ? path.at(-1)! : -1
  const isClosed = ending.isOpening ? last === stopId : stopIds.includes(last)
  return isClosed && ids[0] === stopId ? ids.subarray(1) : ids
}

/**
 * What follows a turn, from the control string that ends it on: the observed messages and the next
 * turn's opening. It is cut from a rendering behind a synthetic beginning, so that its cost does not
 * depend on the history and nothing earlier can change it.
 */
function bridgeText(
  { chat, profile }: BridgeContext,
  request: BridgeRequest,
  given: { readonly observed: readonly Message[]; readonly anchor: Anchor },
): ChatText {
  const { observed, anchor } = given
  const tools = profile.bridgeNeeds.tools ? request.tools : []
  const messages = [...anchor.before, ...observed]
  const { text, foreign } = chat.render({ messages, tools, opensTurn: true })
  const at = profile.bridgeNeeds.history
    ? chat
        .render({ messages: anchor.before, tools, opensTurn: false })
        .text.lastIndexOf(anchor.mark)
    : text.indexOf(anchor.mark)
  const start = endOf(text, at, anchor)
  if (start === undefined) {
    throw new Error(
      'the chat template does not show where a turn ends before ' +
        `${observed[0]?.role ?? 'nothing'}; \`espalier doctor\` says more`,
    )
  }
  return { text: text.slice(start), foreign: shift(foreign, start) }
}

/** Where the turn ends whose mark is at this place of a text; undefined if the mark belongs to another turn. */
export function endOf(
  text: string,
  at: number,
  { mark, tail, ending }: Anchor,
): number | undefined {
  const from = at + mark.length
  return at < 0 || !text.startsWith(tail + ending.stop, from) ? undefined : from + tail.length
}

/** The synthetic turn before these observations. */
export function anchorOf(
  profile: Profile,
  observed: readonly Message[],
  { messages }: BridgeRequest,
): Anchor {
  const results = observed.filter((message): message is ToolMessage => message.role === 'tool')
  const beginning = profile.bridgeNeeds.history
    ? completeCalls(messages).slice(0, messages.length - observed.length - 1)
    : [asked]
  if (results.length === 0) {
    const { spoken: ending } = profile
    return { before: [...beginning, spokenTurn], mark: contentMark, tail: ending.tail, ending }
  }
  const { called } = profile
  if (!called) throw new Error('the chat template does not show tool results to the policy')
  const calls = callsOf(results)
  const id = (called.mark === 'first' ? calls[0] : calls.at(-1))?.id ?? ''
  const ending = results.length > 1 ? called.several : called
  return {
    before: [...beginning, knownTurn(profile, calls, called.mark)],
    mark: markOf(called.mark),
    tail: ending.tail.replaceAll(lastProbeId, () => id),
    ending,
  }
}

const turnsKept = 512
const turns = new WeakMap<Profile, Map<string, AssistantMessage>>()

/**
 * The synthetic turn that made these calls. The same ones come again and again, turn by turn over
 * all attempts, and a message that is the same object is turned into template values only once.
 */
function knownTurn(
  profile: Profile,
  calls: ReturnType<typeof callsOf>,
  mark: Parameters<typeof callingTurn>[1],
): AssistantMessage {
  const known = turns.get(profile) ?? new Map<string, AssistantMessage>()
  turns.set(profile, known)
  const key = JSON.stringify(calls)
  const turn = known.get(key) ?? callingTurn(calls, mark)
  if (known.size >= turnsKept) known.clear()
  known.set(key, turn)
  return turn
}

/** If no control token ends a turn, the policy may have sampled white space of the bridge; it is not written twice. */
export function encodeBehindText(
  { tokenizer }: BridgeContext,
  { path, turnStart }: BridgeRequest,
  { text, foreign }: ChatText,
): Int32Array {
  const said = tokenizer.decode(path.subarray(turnStart))
  let shared = text.length - text.trimStart().length
  while (shared > 0 && !said.endsWith(text.slice(0, shared))) shared--
  return tokenizer.encode(text.slice(shared), { foreign: shift(foreign, shared) })
}

/** Tokens one after the other. */
export function concat(...parts: readonly Int32Array[]): Int32Array {
  const joined = new Int32Array(parts.reduce((length, part) => length + part.length, 0))
  let at = 0
  for (const part of parts) {
    joined.set(part, at)
    at += part.length
  }
  return joined
}
