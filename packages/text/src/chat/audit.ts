import { type Message, textOf } from '../message.ts'
import type { BridgeRequest } from '../renderer.ts'
import { concat } from './bridge.ts'
import type { ChatRequest } from './chat.ts'
import type { Conversation, ConversationTurn } from './random-conversation.ts'
import { shift } from './ranges.ts'
import type { ModelRenderer } from './renderer.ts'

/** What became of one turn when its path was compared with a fresh rendering of its conversation. */
export type TurnFinding =
  /** The path's tokens are those of the rendering. */
  | { readonly kind: 'exact' }
  /** The text is the same; where a turn borders on text without a control token, its tokens are split differently. */
  | { readonly kind: 'merged' }
  /** The template shows history differently now; `preserve` kept it, `faithful` forked with this cause. */
  | { readonly kind: 'rewritten'; readonly cause: string }
  /** An earlier turn was rewritten, which `preserve` kept; here nothing more changed. */
  | { readonly kind: 'preserved' }
  /** A promise was broken. */
  | { readonly kind: 'violated'; readonly problem: string }

/**
 * Plays a conversation on a renderer in both modes of history and compares every turn with the whole
 * rendering. A template that refuses the conversation throws.
 */
export function auditConversation(
  renderer: ModelRenderer,
  conversation: Conversation,
): readonly TurnFinding[] {
  const plays = playTurns(renderer, conversation)
  const preserved = auditPreserved(renderer.withHistory('preserve'), conversation, plays)
  const faithful = auditFaithful(renderer.withHistory('faithful'), conversation, plays)
  return preserved.map((finding, turn) => {
    if (finding.kind === 'violated') return finding
    const other = faithful[turn]!
    if (other.kind === 'violated') return other
    return other.kind === 'rewritten' ? other : finding
  })
}

/** A turn as it is played: what came before it, and the whole conversation after it. */
interface Play {
  readonly turn: ConversationTurn
  readonly before: readonly Message[]
  readonly messages: readonly Message[]
  readonly whole: Shown
  /** The conversation up to the turn itself; undefined if the template refuses to end there. */
  readonly turnLast: Shown | undefined
}

/** A rendering, and where in it the turn of interest ends: behind its stop, or behind its words. */
interface Shown {
  readonly ids: Int32Array
  /** The text that the tokens stand for. */
  readonly text: string
  readonly end: { readonly tokens: number; readonly text: number } | undefined
}

function playTurns(renderer: ModelRenderer, conversation: Conversation): readonly Play[] {
  const { tools } = conversation
  let before = conversation.opening
  return conversation.turns.map(turn => {
    const messages = [...before, turn.message, ...turn.observed]
    const whole = showTurn(renderer, turn, { messages, tools, opensTurn: true })
    const last = { messages: [...before, turn.message], tools, opensTurn: false }
    const play: Play = { turn, before, messages, whole, turnLast: tryShow(renderer, turn, last) }
    before = messages
    return play
  })
}

function tryShow(
  renderer: ModelRenderer,
  turn: ConversationTurn,
  request: ChatRequest,
): Shown | undefined {
  try {
    return showTurn(renderer, turn, request)
  } catch {
    return undefined
  }
}

function showTurn(renderer: ModelRenderer, turn: ConversationTurn, request: ChatRequest): Shown {
  const { tokenizer, chat } = renderer
  const { text, foreign } = chat.render(request)
  const ids = tokenizer.encode(text, { foreign })
  const shown = tokenizer.decode(ids)
  return { ids, text: shown, end: findEnd(renderer, turn, { ids, text: shown }) }
}

function findEnd(
  { tokenizer, profile }: ModelRenderer,
  { message, sentinel }: ConversationTurn,
  { ids, text }: Pick<Shown, 'ids' | 'text'>,
): Shown['end'] {
  const last = text.lastIndexOf(sentinel)
  if (last < 0) return undefined
  const stops = profile.stops.map(stop => tokenizer.idOf(stop))
  const words = textOf(message.content)
  const wordsEnd = last + words.length - words.indexOf(sentinel)
  for (let index = 0; index < ids.length; index++) {
    if (stops.length > 0 && !stops.includes(ids[index]!)) continue
    const length = tokenizer.decode(ids.subarray(0, index + 1)).length
    const isEnd = stops.length > 0 ? length > last : length >= wordsEnd
    if (isEnd) return { tokens: index + 1, text: length }
  }
  return undefined
}

/**
 * What a policy would sample in a turn: what the template writes for it, if that continues the path.
 * A turn that thinks includes its thoughts, whether or not they are shown later; one that does not
 * is taken from the whole rendering.
 */
function sampleAs(renderer: ModelRenderer, path: Int32Array, play: Play): Int32Array {
  const { tokenizer, profile } = renderer
  const said = tokenizer.decode(path)
  const hasThought = play.turn.message.reasoning_content !== undefined
  const sources = hasThought ? [play.turnLast, play.whole] : [play.whole, play.turnLast]
  for (const source of sources) {
    if (!source?.text.startsWith(said) || (source.end?.text ?? 0) <= said.length) continue
    const isPrefix = path.every((id, index) => id === source.ids[index])
    if (isPrefix) return source.ids.slice(path.length, source.end!.tokens)
    return tokenizer.encode(source.text.slice(said.length, source.end!.text))
  }
  return tokenizer.encode(`${play.turn.sentinel}${profile.stops[0] ?? ''}`)
}

function auditPreserved(
  renderer: ModelRenderer,
  { opening, tools }: Conversation,
  plays: readonly Play[],
): readonly TurnFinding[] {
  let path = renderer.render(opening, tools)
  return plays.map((play): TurnFinding => {
    const said = concat(path, sampleAs(renderer, path, play))
    const request = requestOf(play, said, { turnStart: path.length, tools })
    const bridge = renderer.bridge(request)
    path = concat(said, bridge.ids)
    if (bridge.kind !== 'extends') return violated(`preserve rewrote turn ${play.turn.sentinel}`)
    const appended = expectedBridge(renderer, play, request)
    if (!isEqual(bridge.ids, appended)) {
      return violated(
        `preserve appended ${show(renderer, bridge.ids)}, the template ${show(renderer, appended)}`,
      )
    }
    return compare(renderer, path, { whole: play.whole, before: said.length })
  })
}

function requestOf(
  play: Play,
  path: Int32Array,
  { turnStart, tools }: Pick<BridgeRequest, 'turnStart' | 'tools'>,
): BridgeRequest {
  const { messages, turn } = play
  return { path, turnStart, messages, observed: turn.observed.length, tools }
}

/** A path against the whole rendering that it should be. */
function compare(
  renderer: ModelRenderer,
  path: Int32Array,
  { whole, before }: { readonly whole: Shown; readonly before: number },
): TurnFinding {
  const { ids: wholeIds, text: shown } = whole
  if (isEqual(path, wholeIds)) return { kind: 'exact' }
  const text = renderer.decode(path)
  if (text !== shown) {
    return shown.startsWith(renderer.decode(path.subarray(0, before)))
      ? violated(`the path ends in ${show(renderer, path.subarray(before))}, not as rendered`)
      : { kind: 'preserved' }
  }
  const { opening, closing } = renderer.profile.borders
  const bridge = path.subarray(before)
  if (
    closing === 'control' &&
    !isEqual(bridge, wholeIds.subarray(wholeIds.length - bridge.length))
  ) {
    return violated(`the bridge ${show(renderer, bridge)} is encoded otherwise in the rendering`)
  }
  if (opening === 'control' && closing === 'control' && isEqual(path, reencoded(renderer, path))) {
    return violated('tokens differ from the rendering, though every border is a control token')
  }
  return { kind: 'merged' }
}

/**
 * What the template appends for the observed messages behind a fixed beginning: cut out after the
 * turn's last word at the control string that ends it.
 */
function expectedBridge(
  renderer: ModelRenderer,
  play: Play,
  { path, tools }: BridgeRequest,
): Int32Array {
  const { chat, tokenizer, profile, stopIds } = renderer
  const { message, observed, sentinel } = play.turn
  const beginning = profile.bridgeNeeds.history
    ? play.before
    : [{ role: 'user', content: 'Where is it?' } as const]
  const isCalling = (message.tool_calls ?? []).length > 0
  const isSpoken = !isCalling || profile.called?.mark === 'content'
  const turn = { ...message, content: isSpoken ? sentinel : '' }
  const messages = [...beginning, turn, ...observed]
  const { text, foreign } = chat.render({ messages, tools, opensTurn: true })
  const several = (message.tool_calls ?? []).length > 1 ? profile.called?.several : profile.called
  const { stop, isOpening } = (isCalling ? several : undefined) ?? profile.spoken
  if (stop === '')
    return renderer.withHistory('preserve').bridge({
      path,
      turnStart: 0,
      messages,
      observed: observed.length,
      tools,
    }).ids
  const at = text.indexOf(stop, text.lastIndexOf(sentinel))
  const ids = tokenizer.encode(text.slice(at), { foreign: shift(foreign, at) })
  const last = path.at(-1)!
  const isClosed = isOpening ? last === tokenizer.idOf(stop) : stopIds.includes(last)
  return isClosed ? ids.subarray(1) : ids
}

function auditFaithful(
  renderer: ModelRenderer,
  { opening, tools }: Conversation,
  plays: readonly Play[],
): readonly TurnFinding[] {
  let path = renderer.render(opening, tools)
  return plays.map((play): TurnFinding => {
    const said = concat(path, sampleAs(renderer, path, play))
    const bridge = renderer.bridge(requestOf(play, said, { turnStart: path.length, tools }))
    const keep = bridge.kind === 'extends' ? said.length : bridge.keep
    path = concat(said.subarray(0, keep), bridge.ids)
    const { text } = play.whole
    if (renderer.decode(path) !== text) return violated('faithful is not what is rendered')
    const isContinued = text.startsWith(renderer.decode(said))
    if (bridge.kind === 'extends') {
      return isContinued ? { kind: 'exact' } : violated('faithful did not fork')
    }
    if (isContinued) return violated(`faithful forked without need: ${bridge.reason}`)
    if (path[keep] === said[keep])
      return violated(`faithful forked at ${keep}, where nothing changed`)
    return { kind: 'rewritten', cause: bridge.reason }
  })
}

function violated(problem: string): TurnFinding {
  return { kind: 'violated', problem }
}

function isEqual(a: Int32Array, b: Int32Array): boolean {
  return a.length === b.length && a.every((id, index) => id === b[index])
}

function reencoded({ tokenizer }: ModelRenderer, ids: Int32Array): Int32Array {
  return tokenizer.encode(tokenizer.decode(ids))
}

function show(renderer: ModelRenderer, ids: Int32Array): string {
  const text = renderer.decode(ids)
  return JSON.stringify(text.length > 80 ? `${text.slice(0, 80)}…` : text)
}
