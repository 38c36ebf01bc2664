import type { Renderer } from '@espalier/text'
import { type AssistantMessage, imagesIn, type Reply, textOf } from '@espalier/text'
import { acrossNow } from '../../base/core/failure.ts'
import type { Outcome } from '../../base/core/outcome.ts'
import type { Finish } from '../../base/core/policy.ts'
import type { TopLogprobs } from '../../base/core/segment.ts'
import { reviewTurn } from '../rollout/guard.ts'
import { isTooLong } from '../rollout/sample-turn.ts'
import {
  AttemptIsOver,
  type Candidate,
  type CaptureOptions,
  type ChatAnswer,
  type ChatCall,
  type ChatFinish,
  type ChatRequest,
  type ChatUsage,
  ContextIsFull,
  type Unmet,
} from './contract.ts'
import { endByStop, makeDeltas } from './deltas.ts'
import { type Drawn, drawTurn } from './draw.ts'
import { unmetBy } from './form/unmet.ts'
import { formFor } from './form/wanted.ts'
import { Keys, messageKeys } from './message-key.ts'
import { otherSampling, requestSampling, shownBy } from './request.ts'
import type { Share } from './room.ts'
import type { Seat } from './seat.ts'
import { type CapturedTurn, openTurn, type Prompted, promptLength, turnLength } from './turn.ts'

/** Everything that answering a request needs. */
export interface Answering extends Required<Omit<CaptureOptions, 'seats'>> {
  readonly call: ChatCall
  readonly seat: Seat
  /** Whether nothing else of the attempt is being answered. */
  readonly isAlone: boolean
  readonly running: {
    /** Where its request died in the order of events, if that is known. */
    readonly died: number | undefined
  }
  readonly order: AttemptOrder
}

/** What happens in an attempt, one thing after the other. */
export interface AttemptOrder {
  /** The next number in the order of events. */
  tick(): number
  /** Ends the attempt: later requests are refused. */
  endWith(outcome: Outcome): void
}

/** Answers one request: matches it, draws as many answers as it wants, and keeps every one. */
export async function answerRequest(
  given: ChatRequest,
  answering: Answering,
): Promise<readonly ChatAnswer[]> {
  const { seat, context, attempt, samplingFrom } = answering
  const began = answering.order.tick()
  const showsImages = imagesIn(given.messages).length > 0
  const request = showsImages ? await seat.images.admit(given, attempt.signal) : given
  const prompted = seat.known.match(shownBy(request, context), attempt)
  if (samplingFrom === 'run') noteSampling(request, answering)
  const { count = 1 } = request
  if (count === 1) return [await answerOnce(request, answering, { index: 0, began, prompted })]
  const drawing = Array.from({ length: count }, (_, index) =>
    answerOnce(request, answering, { index, began, prompted: ownTokens(prompted, index) }),
  )
  const settled = await Promise.allSettled(drawing)
  return settled.map(each => {
    if (each.status === 'fulfilled') return each.value
    throw each.reason
  })
}

/** Every answer grows on tokens of its own. */
function ownTokens(prompted: Prompted, index: number): Prompted {
  return index === 0
    ? prompted
    : { ...prompted, tokens: prompted.tokens.fork(promptLength(prompted)) }
}

/** Records once which sampling settings of the request the run overrode. */
function noteSampling(request: ChatRequest, { seat, context }: Answering): void {
  for (const name of otherSampling(request, context.sampling)) {
    const kind = `sampling:${name}`
    if (seat.tally.events.some(event => event.kind === kind)) continue
    const detail = `the agent asked for ${request[name]}, the run draws with ${context.sampling[name]}`
    seat.tally.events.push({ kind, detail })
  }
}

interface One {
  /** Its number among the answers of its request. */
  readonly index: number
  readonly began: number
  readonly prompted: Prompted
}

async function answerOnce(
  request: ChatRequest,
  answering: Answering,
  one: One,
): Promise<ChatAnswer> {
  const { context, attempt, call, seat } = answering
  while (seat.room.isTaken) await seat.room.settled()
  const share = takeRoom(request, answering, one)
  const deltas = makeDeltas(call, { renderer: context.renderer, request, ...one })
  const drawn = await drawTurn(one.prompted, {
    context,
    attempt,
    room: share.tokens,
    sampling: samplingOf(request, answering),
    stop: request.stop ?? [],
    topLogprobs: request.topLogprobs ?? 0,
    form: formFor(request, context, one.prompted.tools),
    key: keyOf(answering, one),
    seat: seat.name,
    seedName: seedName(request, answering, one),
    seed: answering.samplingFrom === 'request' ? namedSeed(request, one) : undefined,
    watch: deltas.watch,
  })
  share.settle(drawn.segments.reduce((sum, { ids }) => sum + ids.length, 0))
  count(answering, drawn)
  if (isTooLong(drawn.error)) throw refused(answering, one, drawn.error)
  const turn = keep(request, answering, { drawn, ...one })
  if (!drawn.sampled) throw drawn.error
  refuseGuarded(answering, turn, drawn.sampled.finish)
  endAtLength(answering, drawn.sampled.finish, share)
  const answer = toAnswer(turn, drawn, { request, answering })
  deltas.finish(answer.message)
  return answer
}

/** What an agent is told whose prompt does not fit the policy's own context: it may ask again with less. */
function refused({ seat }: Answering, { prompted }: One, { message }: Error): ContextIsFull {
  seat.tally.events.push({ kind: 'context-refused', detail: message })
  return new ContextIsFull(promptLength(prompted), `the policy refuses it: ${message}`)
}

function takeRoom(
  { maxTokens }: ChatRequest,
  { seat: { room }, attempt, order }: Answering,
  { prompted }: One,
): Share {
  attempt.signal.throwIfAborted()
  try {
    return room.take({ prompt: promptLength(prompted), most: maxTokens })
  } catch (error) {
    if (error instanceof AttemptIsOver) order.endWith(error.outcome)
    throw error
  }
}

function samplingOf(
  request: ChatRequest,
  { context, samplingFrom }: Answering,
): CaptureOptions['context']['sampling'] {
  return samplingFrom === 'run' ? context.sampling : requestSampling(request, context.sampling)
}

/**
 * Which sample of the attempt this is, for scripts and cassettes: its number, if requests come
 * one after the other; its tokens, where several run side by side.
 */
function keyOf({ attempt, seat, isAlone }: Answering, { prompted, index }: One) {
  const { task, member } = attempt
  const isPlain = isAlone && index === 0
  const branch = isPlain ? seat.name : `${seat.name}${prompted.tokensKey}${index}`
  return { task: task.id, member, branch, turn: isPlain ? seat.known.turns.length : prompted.depth }
}

/** The seed that a request names; further answers to it have those behind it. */
function namedSeed({ seed }: ChatRequest, { index }: One): number | undefined {
  return seed === undefined ? undefined : seed + index
}

/** What a draw's seed depends on: the prompt and how often it was drawn from, never the time. */
function seedName({ seed }: ChatRequest, { seat }: Answering, { prompted }: One): string {
  const { draws } = seat.tally
  const nth = draws.get(prompted.tokensKey) ?? 0
  draws.set(prompted.tokensKey, nth + 1)
  return [seat.name, prompted.tokensKey, nth, seed ?? ''].join(':')
}

function count({ seat: { tally } }: Answering, { segments, usage }: Drawn): void {
  tally.sampled += segments.reduce((sum, { ids }) => sum + ids.length, 0)
  tally.prompted += usage.prompted
  tally.cached += usage.cached
  tally.seconds += usage.seconds
  tally.isReencoded ||= usage.isReencoded
  for (const server of usage.servers) tally.servers.add(server)
}

/** Keeps what was drawn as a turn, whole or as far as it came. */
function keep(
  request: ChatRequest,
  answering: Answering,
  { drawn, prompted, began }: One & { readonly drawn: Drawn },
): CapturedTurn {
  const { seat, running } = answering
  const message = messageOf(request, answering, { drawn, prompted })
  const ended = answering.order.tick()
  const turn = openTurn(prompted, {
    number: seat.known.turns.length,
    segments: drawn.segments,
    finish: drawn.sampled?.finish ?? { kind: 'abort' },
    message,
    saidKeys: new Keys(() => [...prompted.keys.list, ...messageKeys([message])]),
    began,
    ended: drawn.sampled ? ended : (running.died ?? ended),
    isCut: !drawn.sampled,
  })
  const tokens = turnLength(turn) - promptLength(turn)
  if (turn.isCut) {
    const detail = `a request died with ${tokens} tokens of its answer`
    seat.tally.events.push({ kind: 'request-died', detail, figures: { tokens } })
  }
  if (!turn.isCut || tokens > 0) seat.known.add(turn)
  return turn
}

/** What is said back: the sampled turn as a message, as far as the request wants to see it. */
function messageOf(
  { stop = [], parallelCalls = true }: ChatRequest,
  { context, attempt, seat }: Answering,
  { drawn, prompted }: { readonly drawn: Drawn; readonly prompted: Prompted },
): AssistantMessage {
  const text = drawn.sampled?.text
  const ids = prompted.tokens.view(promptLength(prompted))
  const { renderer } = context
  const read = (): Reply['message'] => renderer.parse(ids, prompted.tools, prompted.depth).message
  const message = text ? text.message : acrossNow('renderer', attempt, read)
  const [first, ...others] = message.tool_calls ?? []
  if (parallelCalls || others.length === 0) return withoutStop(message, stop)
  seat.tally.events.push({ kind: 'calls-withheld', detail: `${others.length} behind the first` })
  return { ...message, tool_calls: [first!] }
}

/** A text that ends answers is not part of them, nor is what else its last token says. */
function withoutStop(message: AssistantMessage, stop: readonly string[]): AssistantMessage {
  const words = textOf(message.content)
  const end = endByStop(words, stop)
  return end === undefined ? message : { ...message, content: words.slice(0, end) }
}

/** What a guard stopped ends the attempt. */
function refuseGuarded({ context, order }: Answering, turn: CapturedTurn, finish: Finish): void {
  if (!context.guards) return
  const { messages, message } = turn
  const calls = (message.tool_calls ?? []).map(({ id, function: { name, arguments: text } }) => ({
    kind: 'parsed' as const,
    id,
    name,
    arguments: text,
  }))
  const guard =
    finish.kind === 'guard'
      ? finish.guard
      : reviewTurn({ context, messages: [...messages, message] }, { message, calls })
  if (guard === undefined) return
  const outcome = { kind: 'truncated', limit: `guard:${guard}` } as const
  order.endWith(outcome)
  throw new AttemptIsOver(outcome)
}

/** An answer that ran out of the run's tokens ends the attempt, unless it may go on. */
function endAtLength(
  { context, order, seat: { room } }: Answering,
  finish: Finish,
  { bound }: Share,
): void {
  if (finish.kind !== 'length' || bound === 'request') return
  if (context.onLength === 'end' || room.left <= 0)
    order.endWith({ kind: 'truncated', limit: bound })
}

/** Counts, in the record, what the request asked for and the answer lacks. */
function noteUnmet(
  request: ChatRequest,
  { seat }: Answering,
  { message }: CapturedTurn,
): readonly Unmet[] {
  const unmet = unmetBy(request, message)
  for (const { what, problem } of unmet) {
    seat.tally.events.push({ kind: `unmet:${what}`, detail: problem })
  }
  return unmet
}

function toAnswer(
  turn: CapturedTurn,
  { sampled, usage }: Drawn,
  { request, answering }: { readonly request: ChatRequest; readonly answering: Answering },
): ChatAnswer {
  const { cached } = usage
  const { topLogprobs = 0 } = request
  const start = promptLength(turn)
  const ids = turn.tokens.view()
  const own = turn.segments.reduce((sum, { ids: each }) => sum + each.length, 0)
  return {
    id: turn.tokensKey + turn.number,
    message: saidBack(turn.message),
    finish: finishOf(turn, sampled!.finish),
    usage: {
      prompt: start,
      sampled: own,
      ...(cached > 0 && { cached }),
      ...reasoningIn(turn, ids.subarray(start, start + own), answering.context.renderer),
    },
    unmet: noteUnmet(request, answering, turn),
    tokens: {
      prompt: ids.subarray(0, start),
      sampled: ids.subarray(start, start + own),
      logprobs: logprobsOf(turn, own),
      ...(topLogprobs > 0 && { candidates: candidatesOf(turn, topLogprobs) }),
      version: turn.segments.reduce((newest, { version }) => Math.max(newest, version.to), 0),
    },
  }
}

/**
 * What the agent gets to read. The turn itself keeps the white space that was sampled before words
 * and around reasoning, since a template may write it again.
 */
function saidBack(message: AssistantMessage): AssistantMessage {
  const { content, reasoning_content: reasoning } = message
  const words = typeof content === 'string' ? content.trimStart() : content
  const thoughts = reasoning?.trim()
  if (words === content && thoughts === reasoning) return message
  return {
    ...message,
    content: words,
    ...(thoughts !== undefined && { reasoning_content: thoughts }),
  }
}

function reasoningIn(
  { message }: CapturedTurn,
  ids: Int32Array,
  { decode }: Renderer,
): Pick<ChatUsage, 'reasoning'> {
  const { reasoning_content: reasoning = '' } = message
  return reasoning === '' ? {} : { reasoning: countReasoning(ids, reasoning, decode) }
}

/** How many tokens there are up to the end of the reasoning. */
function countReasoning(ids: Int32Array, reasoning: string, decode: Renderer['decode']): number {
  const text = decode(ids)
  // Its last words suffice, and are found too if it stands in several places.
  const last = reasoning.slice(-64)
  const at = text.indexOf(last, reasoning.length - last.length)
  if (at < 0) return 0
  const end = at + last.length
  let [low, high] = [0, ids.length]
  while (low < high) {
    const middle = (low + high) >> 1
    if (decode(ids.subarray(0, middle)).length < end) low = middle + 1
    else high = middle
  }
  return low
}

function candidatesOf(
  { segments }: CapturedTurn,
  count: number,
): readonly (readonly Candidate[])[] {
  return segments.flatMap(({ ids, top }) =>
    Array.from(ids, (_, index) => (top ? candidatesAt(top, index).slice(0, count) : [])),
  )
}

function candidatesAt({ width, ids, logprobs }: TopLogprobs, index: number): readonly Candidate[] {
  const from = index * width
  return Array.from(ids.subarray(from, from + width), (id, at) => ({
    id,
    logprob: logprobs[from + at]!,
  })).filter(({ logprob }) => Number.isFinite(logprob))
}

function finishOf({ message }: CapturedTurn, finish: Finish): ChatFinish {
  if (finish.kind === 'length') return 'length'
  return (message.tool_calls ?? []).length > 0 ? 'tool-calls' : 'stop'
}

function logprobsOf({ segments }: CapturedTurn, length: number): Float32Array | null {
  if (segments.length === 1) return segments[0]!.logprobs
  const all = new Float32Array(length)
  let at = 0
  for (const { ids, logprobs } of segments) {
    if (!logprobs) return null
    all.set(logprobs, at)
    at += ids.length
  }
  return all
}
