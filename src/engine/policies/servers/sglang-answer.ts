import type { Finish } from '../../../base/core/policy.ts'
import type { TopLogprobs } from '../../../base/core/segment.ts'
import {
  asArray,
  asCount,
  asObject,
  asText,
  eventError,
  type Fields,
  isId,
  isLogprob,
  parseJson,
  shown,
  wrong,
  wrongLogprob,
} from '../transport/reading.ts'
import { refusal } from '../transport/refusal.ts'
import type { ServerError } from '../transport/server-error.ts'
import { TokenBuffer } from '../transport/token-buffer.ts'
import { type Generated, spanNames } from './generated.ts'

/** Reads the body of a whole answer. `width` is how many candidates per token were asked for. */
export function readGeneratedBody(body: Buffer, where: string, width: number): Generated {
  return readGenerated(parseJson(body, where), where, width)
}

/** Reads a whole answer that is parsed already. */
export function readGenerated(answer: unknown, where: string, width: number): Generated {
  const fields = asObject(answer, where, 'the answer')
  const meta = asObject(fields.meta_info, where, 'meta_info')
  const finish = readFinish(meta.finish_reason, where)
  const pairs = pairsOf(meta, where)
  const buffer = new TokenBuffer(pairs.length)
  addPairs(pairs, buffer, { where, from: 0 })
  checkIds(fields, buffer.ids, where)
  checkCount(meta, buffer.length, where)
  const top = readTop(meta, where, width)
  return { ids: buffer.ids, logprobs: buffer.logprobs, top, finish, ...readMeta(meta, where) }
}

/** The log-probabilities of the last tokens of a prompt, checked to be of these tokens. */
export function readScores(
  answer: unknown,
  where: string,
  scored: Int32Array,
): { readonly logprobs: Float32Array; readonly weights: unknown } {
  const meta = asObject(asObject(answer, where, 'the answer').meta_info, where, 'meta_info')
  const pairs = asArray(meta.input_token_logprobs, where, 'meta_info.input_token_logprobs')
  const skip = pairs.length - scored.length
  if (skip < 0) {
    const problem = `meta_info.input_token_logprobs has ${pairs.length} entries, expected ${scored.length}`
    throw wrong(where, problem)
  }
  const buffer = new TokenBuffer()
  addPairs(pairs, buffer, { where, from: skip, name: 'input_token_logprobs' })
  const differs = buffer.ids.findIndex((id, index) => id !== scored[index])
  if (differs >= 0) {
    const problem = `input_token_logprobs[${skip + differs}] is of token ${buffer.ids[differs]}, not ${scored[differs]}`
    throw wrong(where, problem)
  }
  return { logprobs: buffer.logprobs, weights: meta.weight_version }
}

/** Puts the events of one streamed sample together. */
export interface GeneratedStream {
  /** Takes one event's data; returns whether there are new tokens to look at. */
  take(data: string): boolean
  /** A view of the ids so far. */
  readonly ids: Int32Array
  /** The weights named first and last. */
  readonly weights: readonly unknown[]
  /** What there is: whole, or cut short by `stopped`. */
  finish(stopped?: Finish): Generated
}

/** Work on a growing event is skipped until it has grown by this share of what was read last. */
const growth = 1 / 16

/**
 * Opens a stream. By default every event repeats all tokens so far, so that reading each of them
 * would be quadratic: once that is seen, an event is only read when it has grown enough.
 */
export function makeGeneratedStream(where: string, width: number): GeneratedStream {
  const buffer = new TokenBuffer()
  const tops: unknown[] = []
  const weights: unknown[] = []
  let meta: Fields = {}
  let unread: string | undefined
  let readLength = 0
  let repeats = false

  function read(data: string): boolean {
    const before = buffer.length
    const event = asObject(parseJson(data, where), where, 'an event')
    if (event.error !== undefined) throw eventError(event.error, where)
    meta = asObject(event.meta_info, where, 'meta_info')
    const pairs = pairsOf(meta, where)
    const isWhole = takesFromStart(meta, pairs.length, { where, have: before })
    addPairs(pairs, buffer, { where, from: isWhole ? before : 0 })
    checkIds(event, isWhole ? buffer.ids : buffer.ids.subarray(before), where)
    const candidates = asArray(meta.output_top_logprobs ?? [], where, 'output_top_logprobs')
    for (const row of candidates.slice(isWhole ? tops.length : 0)) tops.push(row)
    // The first event looks the same in both ways of streaming; the second one decides.
    repeats = isWhole && before > 0
    weights.push(meta.weight_version)
    if (weights.length > 2) weights.splice(1, 1)
    return buffer.length > before
  }

  return {
    take(data) {
      if (repeats && data.length < readLength * (1 + growth)) {
        unread = data
        return false
      }
      unread = undefined
      readLength = data.length
      return read(data)
    },
    get ids() {
      return buffer.ids
    },
    get weights() {
      return weights
    },
    finish(stopped) {
      if (unread !== undefined) read(unread)
      unread = undefined
      const ended = meta.finish_reason ? readFinish(meta.finish_reason, where) : undefined
      const finish = ended ?? stopped
      if (!finish) throw wrong(where, 'the stream ended without a finish_reason')
      const top = readTop({ output_top_logprobs: tops }, where, width)
      const { ids, logprobs } = buffer
      return { ...readMeta(meta, where), ids, logprobs, top, finish }
    },
  }
}

function takesFromStart(
  meta: Fields,
  count: number,
  { where, have }: { where: string; have: number },
): boolean {
  const total = asCount(meta.completion_tokens, where, 'meta_info.completion_tokens') ?? count
  if (count === total && total >= have) return true
  if (have + count === total) return false
  throw wrong(
    where,
    `an event has ${count} output_token_logprobs after ${have}, but completion_tokens is ${total}`,
  )
}

function readMeta(
  meta: Fields,
  where: string,
): Pick<Generated, 'weights' | 'promptTokens' | 'cachedTokens' | 'experts'> {
  return {
    ...(meta.routed_experts !== undefined && { experts: meta.routed_experts }),
    weights: spanNames(meta.weight_versions) ?? meta.weight_version,
    promptTokens: asCount(meta.prompt_tokens, where, 'meta_info.prompt_tokens'),
    cachedTokens: asCount(meta.cached_tokens, where, 'meta_info.cached_tokens'),
  }
}

/** A sample aborted before it began has no arrays at all. */
function pairsOf(meta: Fields, where: string): readonly unknown[] {
  const pairs = meta.output_token_logprobs
  if (pairs === undefined && !meta.completion_tokens) return []
  return asArray(pairs, where, 'meta_info.output_token_logprobs')
}

interface PairPlace {
  readonly where: string
  readonly from: number
  readonly name?: string
}

function addPairs(pairs: readonly unknown[], buffer: TokenBuffer, place: PairPlace): void {
  for (let index = place.from; index < pairs.length; index++) {
    const pair = pairs[index] as readonly unknown[] | null
    const logprob = pair?.[0]
    const id = pair?.[1]
    if (isLogprob(logprob) && isId(id)) buffer.push(id, logprob)
    else throw wrongPair(pair, index, place)
  }
}

function wrongPair(pair: unknown, index: number, place: PairPlace): ServerError {
  const path = `meta_info.${place.name ?? 'output_token_logprobs'}[${index}]`
  if (!Array.isArray(pair) || !isId(pair[1])) {
    return wrong(
      place.where,
      `${path} must be [log-probability, token id, text], got ${shown(pair)}`,
    )
  }
  return wrongLogprob(place.where, `${path}[0]`, pair[0])
}

function checkIds(fields: Fields, ids: Int32Array, where: string): void {
  if (fields.output_ids === undefined || fields.output_ids === null) return
  const given = asArray(fields.output_ids, where, 'output_ids')
  if (given.length !== ids.length) {
    const problem = `output_ids has ${given.length} ids but output_token_logprobs ${ids.length}`
    throw wrong(where, problem)
  }
  for (let index = 0; index < given.length; index++) {
    if (given[index] === ids[index]) continue
    const problem = `output_ids[${index}] is ${shown(given[index])} but output_token_logprobs has ${ids[index]} there`
    throw wrong(where, problem)
  }
}

function checkCount(meta: Fields, count: number, where: string): void {
  const total = asCount(meta.completion_tokens, where, 'meta_info.completion_tokens')
  if (total === undefined || total === count) return
  throw wrong(where, `completion_tokens is ${total} but output_token_logprobs has ${count} entries`)
}

function readFinish(value: unknown, where: string): Finish {
  const reason = asObject(value, where, 'meta_info.finish_reason')
  const type = asText(reason.type, where, 'meta_info.finish_reason.type')
  if (type === 'stop' || type === 'length') return { kind: type }
  if (type !== 'abort') {
    const problem = `finish_reason.type must be stop, length or abort, got ${shown(type)}`
    throw wrong(where, problem)
  }
  if (typeof reason.status_code === 'number' && reason.status_code >= 400) {
    const message = `${where} gave up the sample: ${shown(reason.message)}`
    throw refusal(message, String(reason.message), { status: reason.status_code })
  }
  return { kind: 'abort' }
}

function readTop(meta: Fields, where: string, width: number): TopLogprobs | undefined {
  if (width === 0) return undefined
  const rows = asArray(meta.output_top_logprobs, where, 'meta_info.output_top_logprobs')
  const ids = new Int32Array(rows.length * width)
  const logprobs = new Float32Array(rows.length * width)
  rows.forEach((row, token) => {
    const path = `meta_info.output_top_logprobs[${token}]`
    const candidates = asArray(row, where, path)
    if (candidates.length < width) {
      throw wrong(where, `${path} has ${candidates.length} candidates, expected ${width}`)
    }
    for (let rank = 0; rank < width; rank++) {
      const [logprob, id] = asArray(candidates[rank], where, `${path}[${rank}]`)
      if (!isId(id) || typeof logprob !== 'number' || Number.isNaN(logprob)) {
        throw wrong(
          where,
          `${path}[${rank}] must be [log-probability, token id], got ${shown(candidates[rank])}`,
        )
      }
      ids[token * width + rank] = id
      logprobs[token * width + rank] = logprob
    }
  })
  return { width, ids, logprobs }
}
