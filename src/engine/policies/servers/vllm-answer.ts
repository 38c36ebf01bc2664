import type { Finish } from '../../../base/core/policy.ts'
import type { TopLogprobs } from '../../../base/core/segment.ts'
import {
  asArray,
  asCount,
  asIds,
  asObject,
  eventError,
  type Fields,
  isId,
  isLogprob,
  parseJson,
  shown,
  wrong,
  wrongLogprob,
} from '../transport/reading.ts'
import { TokenBuffer } from '../transport/token-buffer.ts'
import type { Asked } from './answer-reading.ts'
import { type Generated, spanNames } from './generated.ts'

/** One choice of an answer, checked. */
export interface VllmChoice {
  readonly ids: Int32Array
  readonly logprobs: Float32Array
  readonly top: TopLogprobs | undefined
  readonly finish: Finish
  /** The names of the weights in their order, if they changed while it was sampled. */
  readonly weights?: readonly unknown[]
  /** Which experts served its tokens, as the server wrote it. */
  readonly experts?: unknown
}

/** Where an answer came from and what was asked for. */
export interface VllmAsked {
  readonly where: string
  /** Candidates per token. */
  readonly width: number
  /** The prompt as it was sent; a server that repeats it must repeat it exactly. */
  prompt(): Int32Array
}

/** Reads the choices of a whole answer, in the order of their index. */
export function readChoices(answer: unknown, asked: VllmAsked): readonly VllmChoice[] {
  const { where } = asked
  const fields = asObject(answer, where, 'the answer')
  const choices = asArray(fields.choices, where, 'choices').map((value, place) => {
    const choice = asObject(value, where, `choices[${place}]`)
    const buffer = makeChoice(asked)
    buffer.take(choice)
    return { index: choice.index, read: buffer.finish() }
  })
  choices.sort((a, b) => Number(a.index ?? 0) - Number(b.index ?? 0))
  return choices.map(({ read }) => read)
}

/** Reads the body of an answer with one choice. */
export function readChoiceBody(body: Buffer, { where, width, sent }: Asked): Generated {
  const answer = parseJson(body, where)
  const choices = readChoices(answer, { where, width, prompt: () => promptOf(sent) })
  checkCount(choices, 1, where)
  const { ids, logprobs, top, finish, weights, experts } = choices[0]!
  const cached = cachedTokens(answer, where)
  return {
    ids,
    logprobs,
    top,
    finish,
    weights,
    experts,
    promptTokens: undefined,
    cachedTokens: cached,
  }
}

/** The ids in a body that was sent: its first list. */
function promptOf(sent: Buffer): Int32Array {
  const from = sent.indexOf('[')
  return Int32Array.from(JSON.parse(sent.toString('latin1', from, sent.indexOf(']', from) + 1)))
}

/** Throws unless a server gave as many choices as it was asked for. */
export function checkCount({ length }: readonly VllmChoice[], count: number, where: string): void {
  if (length === count) return
  throw wrong(where, `the answer has ${length} choices where ${count} were asked for`)
}

/** Prompt tokens that were in the server's cache, if it reports them. */
export function cachedTokens(answer: unknown, where: string): number | undefined {
  const usage = (answer as Fields | null)?.usage as Fields | null | undefined
  const details = usage?.prompt_tokens_details as Fields | null | undefined
  return asCount(details?.cached_tokens, where, 'usage.prompt_tokens_details.cached_tokens')
}

/** A choice that may come in pieces. */
export interface OpenChoice {
  /** Takes a choice or a piece of one; returns whether it brought tokens. */
  take(choice: Fields): boolean
  /** Takes one event's data. */
  takeEvent(data: string): boolean
  /** A view of the ids so far. */
  readonly ids: Int32Array
  finish(stopped?: Finish): VllmChoice
}

/** Opens a choice: pieces of a stream carry only what is new. */
export function makeChoice(asked: VllmAsked): OpenChoice {
  const { where, width } = asked
  const buffer = new TokenBuffer()
  const candidates: Candidate[][] = []
  let reason: unknown
  let weights: readonly unknown[] | undefined
  let experts: unknown

  function take(choice: Fields): boolean {
    checkPrompt(choice.prompt_token_ids, asked)
    const ids = asIds(choice.token_ids ?? [], where, 'token_ids')
    const places = placesOf(choice.logprobs, where, ids.length)
    places.forEach((place, index) => {
      const id = ids[index]!
      if (place.id !== undefined && place.id !== id) {
        throw wrong(where, `token_ids[${index}] is ${id} but its log-probability is of ${place.id}`)
      }
      if (!isLogprob(place.logprob))
        throw wrongLogprob(where, `logprobs of token ${index}`, place.logprob)
      buffer.push(id, place.logprob)
      if (width > 0) candidates.push(place.candidates())
    })
    reason = choice.finish_reason ?? reason
    weights = spanNames(choice.weight_versions) ?? weights
    experts = choice.routed_experts ?? experts
    return ids.length > 0
  }

  return {
    take,
    takeEvent(data) {
      const event = asObject(parseJson(data, where), where, 'an event')
      if (event.error !== undefined) throw eventError(event.error, where)
      const [choice] = asArray(event.choices, where, 'choices')
      return choice === undefined ? false : take(asObject(choice, where, 'choices[0]'))
    },
    get ids() {
      return buffer.ids
    },
    finish(stopped) {
      const finish = reason === undefined ? stopped : readFinish(reason, where)
      if (!finish) throw wrong(where, 'the stream ended without a finish_reason')
      const { ids, logprobs } = buffer
      const top = width === 0 ? undefined : topOf(candidates, asked)
      return { ids, logprobs, finish, top, experts, ...(weights && { weights }) }
    },
  }
}

interface Candidate {
  readonly id: number
  readonly logprob: number
}

/** One sampled token as the server reports it. */
interface SampledToken {
  readonly id: number | undefined
  readonly logprob: unknown
  readonly candidates: () => Candidate[]
}

/** The two shapes of log-probabilities: a list of entries, or lists side by side. */
function placesOf(value: unknown, where: string, count: number): readonly SampledToken[] {
  if (count === 0) return []
  const logprobs = asObject(value, where, 'logprobs')
  const places = logprobs.content === undefined ? columns(logprobs, where) : rows(logprobs, where)
  if (places.length === count) return places
  throw wrong(where, `token_ids has ${count} ids but logprobs has ${places.length}`)
}

function rows(logprobs: Fields, where: string): readonly SampledToken[] {
  return asArray(logprobs.content, where, 'logprobs.content').map((value, index) => {
    const entry = asObject(value, where, `logprobs.content[${index}]`)
    return {
      id: tokenId(entry.token_id ?? entry.token),
      logprob: entry.logprob,
      candidates: () =>
        asArray(entry.top_logprobs, where, 'top_logprobs').map(candidate => {
          const { token_id, token, logprob } = asObject(candidate, where, 'a candidate')
          return toCandidate(token_id ?? token, logprob, where)
        }),
    }
  })
}

function columns(logprobs: Fields, where: string): readonly SampledToken[] {
  const tokens = asArray(logprobs.tokens ?? [], where, 'logprobs.tokens')
  const tops = asArray(logprobs.top_logprobs ?? [], where, 'logprobs.top_logprobs')
  return asArray(logprobs.token_logprobs, where, 'logprobs.token_logprobs').map(
    (logprob, index) => ({
      id: tokenId(tokens[index]),
      logprob,
      candidates: () =>
        Object.entries(asObject(tops[index], where, `logprobs.top_logprobs[${index}]`)).map(
          ([token, value]) => toCandidate(token, value, where),
        ),
    }),
  )
}

/** Servers name tokens as `token_id:123` when asked to; other names are plain texts without an id. */
function tokenId(token: unknown): number | undefined {
  if (isId(token)) return token
  if (typeof token !== 'string' || !token.startsWith('token_id:')) return undefined
  const id = Number(token.slice('token_id:'.length))
  return isId(id) ? id : undefined
}

/** Candidates that top-p or top-k cut away have this number, and ids that mean nothing. */
const cutAway = -9999

function toCandidate(token: unknown, logprob: unknown, where: string): Candidate {
  const id = tokenId(token)
  if (id !== undefined && typeof logprob === 'number' && !Number.isNaN(logprob))
    return { id, logprob: logprob <= cutAway ? -Infinity : logprob }
  throw wrong(
    where,
    `a candidate must have a token id and a log-probability, got ${shown(token)} and ${shown(logprob)}`,
  )
}

/** The best `width` candidates of each token; the sampled one is listed even if it is worse. */
function topOf(candidates: readonly Candidate[][], { where, width }: VllmAsked): TopLogprobs {
  const ids = new Int32Array(candidates.length * width)
  const logprobs = new Float32Array(candidates.length * width)
  candidates.forEach((row, token) => {
    if (row.length < width) {
      throw wrong(where, `token ${token} has ${row.length} candidates, expected ${width}`)
    }
    const best = row.toSorted((a, b) => b.logprob - a.logprob)
    for (let rank = 0; rank < width; rank++) {
      ids[token * width + rank] = best[rank]!.id
      logprobs[token * width + rank] = best[rank]!.logprob
    }
  })
  return { width, ids, logprobs }
}

function checkPrompt(value: unknown, { where, prompt: promptSent }: VllmAsked): void {
  if (value === undefined || value === null) return
  const prompt = promptSent()
  const seen = asIds(value, where, 'prompt_token_ids')
  const differs = seen.findIndex((id, index) => id !== prompt[index])
  if (seen.length === prompt.length && differs < 0) return
  throw wrong(
    where,
    differs < 0 || differs >= prompt.length
      ? `the server read ${seen.length} prompt tokens where ${prompt.length} were sent`
      : `the server read token ${seen[differs]} at place ${differs} where ${prompt[differs]} was sent`,
  )
}

function readFinish(reason: unknown, where: string): Finish {
  if (reason === 'stop' || reason === 'length' || reason === 'abort') return { kind: reason }
  throw wrong(where, `finish_reason must be stop, length or abort, got ${shown(reason)}`)
}

/** The log-probabilities of a prompt's tokens from `from` on: one table of ids per place. */
export function readPromptLogprobs(
  value: unknown,
  where: string,
  { ids, from }: { readonly ids: Int32Array; readonly from: number },
): Float32Array {
  const tables = asArray(value, where, 'prompt_logprobs')
  if (tables.length !== ids.length) {
    throw wrong(where, `prompt_logprobs has ${tables.length} places, expected ${ids.length}`)
  }
  const logprobs = new Float32Array(ids.length - from)
  for (let index = from; index < ids.length; index++) {
    const path = `prompt_logprobs[${index}]`
    const table = asObject(tables[index], where, path)
    const entry = asObject(table[String(ids[index])], where, `${path}["${ids[index]}"]`)
    if (!isLogprob(entry.logprob)) throw wrongLogprob(where, path, entry.logprob)
    logprobs[index - from] = entry.logprob
  }
  return logprobs
}
