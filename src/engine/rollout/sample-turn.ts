import type { CallAttempt, Reply } from '@espalier/text'
import { expertsKnown } from '../../base/core/experts.ts'
import { acrossNow, attributed, Failure } from '../../base/core/failure.ts'
import type { Outcome } from '../../base/core/outcome.ts'
import {
  type Finish,
  type Prompt,
  PromptTooLong,
  type Sample,
  type SampleKey,
  type SampleRequest,
  type TextSample,
} from '../../base/core/policy.ts'
import { type SampledSegment, sampled } from '../../base/core/segment.ts'
import { pathTo } from '../../base/core/tree.ts'
import { condenseWalk } from './condensing/condense.ts'
import { makeWatch, reviewTurn } from './guard.ts'
import { showFewer } from './images/show-fewer.ts'
import { takeBegun, takeDrawn } from './next-turn.ts'
import {
  addTurn,
  extend,
  hear,
  leaveUnseen,
  markReencoded,
  note,
  seedFor,
  type Walk,
} from './walk.ts'

/** The result of sampling a turn: a reply to act on, or the end of the trajectory. */
export type Sampled =
  | { readonly kind: 'reply'; readonly reply: Reply }
  | { readonly kind: 'end'; readonly outcome: Outcome }

/** The room a sample has, and what bounds it. */
export interface Room {
  readonly tokens: number
  readonly limit: 'tokens' | 'context'
}

/** Samples one turn from exactly the path so far, and reads it. */
export async function sampleTurn(walk: Walk): Promise<Sampled> {
  const { context } = walk
  if (walk.turns.length >= context.limits.turns) return truncated('turns')
  const turn = context.shared.yielding.whenDue()
  if (turn) await turn
  if (walk.images.length > (context.images?.max ?? 0)) showFewer(walk)
  if (context.condense) await condenseWalk(walk)
  const room = roomOf(walk)
  if (room.tokens <= 0) return truncated(room.limit)
  const begun = takeBegun(walk.next)
  const turnStart = begun === undefined ? walk.tokens.length : walk.tree.nodes[begun]!.start
  const segments = await sampleSegments(walk, room.tokens).catch((cause: unknown) =>
    endRefused(walk, cause),
  )
  if (!segments) return truncated('context')
  const { finish, text, first, isRefused } = segments
  // Many answers can arrive at once: yield, so that reading them does not hold the event loop.
  const swarm = context.shared.yielding.whenDue()
  if (swarm) await swarm
  // A turn begins here, or on the path that this one forked from.
  const from = begun ?? first
  addTurn(walk, { from, finish })
  const reply = text ? replyOf(text) : readReply(walk, turnStart)
  hear(walk, [reply.message])
  const guard = finish.kind === 'guard' ? finish.guard : reviewTurn(walk, reply)
  if (guard !== undefined) {
    note(walk, `guard:${guard}`, `${roomOf(walk).tokens} tokens were left to spend`)
    return truncated(`guard:${guard}`)
  }
  if (finish.kind === 'length' && (context.onLength === 'end' || roomOf(walk).tokens <= 0)) {
    return truncated(isRefused ? 'context' : room.limit)
  }
  return { kind: 'reply', reply }
}

function truncated(limit: Extract<Outcome, { kind: 'truncated' }>['limit']): Sampled {
  return { kind: 'end', outcome: { kind: 'truncated', limit } }
}

/** How many tokens the next sample may have. */
export function roomOf(walk: Walk): Room {
  const { limits } = walk.context
  const context = limits.context - walk.tokens.length
  const tokens = Math.min(limits.newTokens, limits.tokens - walk.used.sampled)
  return context < tokens ? { tokens: context, limit: 'context' } : { tokens, limit: 'tokens' }
}

/** What sampling a turn appended, from node `first` on. */
export interface SampledSegments {
  readonly finish: Finish
  /** Set if the server gave no ids. */
  readonly text: TextSample | undefined
  readonly first: number
  /** Set if the policy's context had no room for the rest. */
  readonly isRefused?: true
}

/** Ends a walk whose prompt the policy refuses as too long; any other failure is passed on. */
function endRefused(walk: Walk, cause: unknown): undefined {
  if (!isTooLong(cause)) throw cause
  note(walk, 'context-refused', cause.message)
  leaveUnseen(walk)
}

/** Whether a policy refused a prompt because it does not fit its context. */
export function isTooLong(error: unknown): error is Failure {
  return error instanceof Failure && error.cause instanceof PromptTooLong
}

/** Changes the request that a walk would send. */
export type ChangeRequest = (request: SampleRequest) => SampleRequest

/** Samples until the turn is over; a sample stopped for new weights goes on under them. */
export async function sampleSegments(
  walk: Walk,
  room: number,
  change?: ChangeRequest,
): Promise<SampledSegments> {
  const { signal } = walk.attempt
  let left = room
  // Known only after the append: siblings append to the same tree meanwhile.
  let first: number | undefined
  for (let part = 0; ; part++) {
    const asked = requestOf(walk, left, part)
    const request = change ? change(asked) : asked
    const sample = await (part === 0 ? sampleOnce(walk, request) : sampleMore(walk, request))
    if (!sample) {
      return { finish: { kind: 'length' }, text: undefined, first: first!, isRefused: true }
    }
    const segment = sample.kind === 'tokens' ? sample.segment : encoded(walk, sample)
    checkIds(walk, segment, left)
    extend(walk, segment)
    first ??= walk.place.node
    walk.used.sampled += segment.ids.length
    left -= segment.ids.length
    if (sample.finish.kind !== 'abort' || left <= 0) {
      const finish = sample.finish.kind === 'abort' ? ({ kind: 'length' } as const) : sample.finish
      return { finish, text: sample.kind === 'text' ? sample : undefined, first }
    }
    signal.throwIfAborted()
  }
}

/** A further part of a turn; nothing if it does not fit the policy's context, and the turn is cut there. */
async function sampleMore(walk: Walk, request: SampleRequest): Promise<Sample | undefined> {
  try {
    return await sampleOnce(walk, request)
  } catch (error) {
    if (!isTooLong(error)) throw error
    note(walk, 'context-refused', error.message)
    return undefined
  }
}

async function sampleOnce(walk: Walk, request: SampleRequest): Promise<Sample> {
  const { context, attempt, used, next } = walk
  const { policy, lanes, clock } = context
  const started = clock()
  try {
    const sample = await (takeDrawn(next) ??
      lanes.policy.run(attempt, () => policy.sample(request, attempt)))
    used.prompted += request.prompt.ids.length
    used.cached += sample.usage.cached ?? 0
    if (sample.usage.server) used.servers.add(sample.usage.server)
    return sample
  } catch (cause) {
    throw attributed('policy', attempt, cause)
  } finally {
    used.seconds.policy += clock() - started
  }
}

function promptOf({ tokens, shown, tree, images, context }: Walk): Prompt {
  const { length } = tokens
  const digest = (): number => tokens.digest(length)
  const prompt = { ids: tokens.view(), messages: shown, tools: tree.tools, digest }
  if (images.length === 0 || !context.images) return prompt
  const { placeholder } = context.renderer.images!
  return { ...prompt, images: { places: images, placeholder, store: context.images.store } }
}

/** The request for a walk's next sample. */
export function requestOf(walk: Walk, maxTokens: number, part: number): SampleRequest {
  const { context, attempt, tree, branch } = walk
  const turn = walk.turns.length
  const request: SampleRequest = {
    prompt: promptOf(walk),
    maxTokens,
    sampling: context.sampling,
    stopIds: context.renderer.stopIds,
    stopStrings: context.stopStrings,
    seed: seedFor(attempt, branch, turn, part),
    key: keyOf(attempt, branch, turn),
    session: tree.id,
    topLogprobs: context.topLogprobs,
  }
  const watch = makeWatch(context)
  const { experts } = context.policy.capabilities
  if (!watch && !experts) return request
  return {
    ...request,
    ...(experts && { expertsFrom: expertsKnown(tree, pathTo(tree, walk.place)) }),
    ...(watch && { watch }),
  }
}

function keyOf({ task, member, making }: Walk['attempt'], branch: string, turn: number): SampleKey {
  const key = { task: task.id, member, branch, turn }
  return making === undefined ? key : { ...key, making }
}

/** A message as tokens. The template ends every turn; one that was cut is given no end. */
function encoded(walk: Walk, { message, finish, version }: TextSample): SampledSegment {
  markReencoded(walk)
  const { renderer } = walk.context
  const whole = renderer.encodeReply(message, walk.tree.tools)
  const isCut = finish.kind !== 'stop' && renderer.stopIds.includes(whole.at(-1)!)
  const ids = isCut ? whole.subarray(0, -1) : whole
  return sampled({ ids, logprobs: null, version })
}

function checkIds(walk: Walk, { ids }: SampledSegment, room: number): void {
  const { vocabulary, name, images } = walk.context.renderer
  let bad = 0
  while (bad < ids.length && ids[bad]! >= 0 && ids[bad]! < vocabulary) bad++
  const fail = (message: string): never => {
    throw new Failure('policy', { cause: new Error(message) })
  }
  if (bad < ids.length) {
    fail(strangeId(ids[bad]!, bad, { vocabulary, name }))
  }
  const shown = images && ids.findIndex(id => images.ids.has(id))
  if (shown !== undefined && shown >= 0) {
    fail(`sampled id ${ids[shown]} at ${shown}, which stands for an image and shows none`)
  }
  if (!walk.isReencoded && ids.length > room) {
    fail(`sampled ${ids.length} tokens where at most ${room} were asked for`)
  }
}

/** A model may have up to this many more rows than its tokenizer has ids, as padding. */
const usualPadding = 1024

function strangeId(
  id: number,
  place: number,
  { vocabulary, name }: { readonly vocabulary: number; readonly name: string },
): string {
  const found = `sampled id ${id} at ${place}, but ${name} has ids 0 to ${vocabulary - 1}`
  const isPadding = id >= vocabulary && id < vocabulary + usualPadding
  return isPadding
    ? `${found}: it may be one of the rows that pad the model's vocabulary, which no text has and an untrained ` +
        'model draws now and then; or is --model another model than the server serves?'
    : `${found}: is --model the model the server serves?`
}

function readReply(walk: Walk, turnStart: number): Reply {
  const { renderer } = walk.context
  return acrossNow('renderer', walk.attempt, () =>
    renderer.parse(walk.tokens.view(turnStart), walk.tree.tools, walk.turns.length - 1),
  )
}

/** The calls a chat-only server read for us; their arguments are checked by whoever runs them. */
function replyOf({ message }: TextSample): Reply {
  const calls = (message.tool_calls ?? []).map(
    ({ id, function: { name, arguments: text } }): CallAttempt =>
      isJsonObject(text)
        ? { kind: 'parsed', id, name, arguments: text }
        : {
            kind: 'malformed',
            id,
            name,
            raw: text,
            problem: 'the arguments are not a JSON object',
          },
  )
  return { message, calls }
}

function isJsonObject(text: string): boolean {
  try {
    const value: unknown = JSON.parse(text)
    return typeof value === 'object' && value !== null && !Array.isArray(value)
  } catch {
    return false
  }
}
