import type { Finish } from '../../core/policy.ts'
import type { TopLogprobs } from '../../core/segment.ts'
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

/** What a llama.cpp server drew, checked. */
export interface LlamaDraw {
  readonly ids: Int32Array
  /** `null` where a character lies across tokens: the server gives no probability for its parts. */
  readonly logprobs: Float32Array | null
  readonly top: TopLogprobs | undefined
  /** Whether the numbers are of the plain distribution, not of the one that was sampled from. */
  readonly isRaw: boolean
  readonly finish: Finish
  readonly promptTokens: number | undefined
  readonly cachedTokens: number | undefined
}

/** Where an answer came from and what was asked for. */
export interface LlamaAsked {
  readonly where: string
  /** Candidates per token. */
  readonly width: number
  /** The server knows no stop ids but the model's own, so the others are looked for here. */
  readonly stopIds: readonly number[]
}

/** Reads a whole answer. */
export function readLlamaAnswer(answer: unknown, asked: LlamaAsked): LlamaDraw {
  const { where } = asked
  const fields = asObject(answer, where, 'the answer')
  const ids = asIds(fields.tokens, where, 'tokens')
  const finish = readFinish(fields, where)
  const entries = entriesOf(fields, where)
  const draw = { ids, ...countsOf(fields, where) }
  if (entries.length < ids.length && isSplit(ids, entries, { where, finish })) {
    return cut({ ...draw, finish, logprobs: null, top: undefined, isRaw: false }, asked)
  }
  checkEntries(ids, entries, where)
  return cut({ ...draw, finish, ...numbersOf(entries, asked) }, asked)
}

/** Puts the events of one streamed sample together. */
export interface LlamaStream {
  /** Takes one event's data; tells whether it brought tokens. */
  take(data: string): boolean
  /** A view of the ids so far. */
  readonly ids: Int32Array
  finish(stopped?: Finish): LlamaDraw
}

/** Opens a stream: every event carries only what is new. */
export function openLlamaStream(asked: LlamaAsked): LlamaStream {
  const { where } = asked
  const buffer = new TokenBuffer()
  const entries: Entry[] = []
  let last: Fields = {}

  return {
    take(data) {
      last = asObject(parseJson(data, where), where, 'an event')
      if (last.error !== undefined) throw eventError(last.error, where)
      const ids = asIds(last.tokens ?? [], where, 'tokens')
      const fresh = entriesOf(last, where)
      checkEntries(ids, fresh, where)
      fresh.forEach((entry, index) => {
        entries.push(entry)
        buffer.push(ids[index]!, 0)
      })
      checkNothingLost(last, buffer.length, where)
      return ids.length > 0
    },
    get ids() {
      return buffer.ids
    },
    finish(stopped) {
      const finish = last.stop === true ? readFinish(last, where) : stopped
      if (!finish) throw wrong(where, 'the stream ended without a last event that has "stop": true')
      const draw = { ids: buffer.ids, ...countsOf(last, where) }
      return cut({ ...draw, finish, ...numbersOf(entries, asked) }, asked)
    },
  }
}

/** What is said of one sampled token. */
interface Entry {
  readonly id: unknown
  /** A log-probability, or with `isRaw` false the logarithm of a probability. */
  readonly logprob: unknown
  readonly isRaw: boolean
  readonly candidates: unknown
  readonly hasWideText: boolean
}

function entriesOf(fields: Fields, where: string): readonly Entry[] {
  const path = 'completion_probabilities'
  return asArray(fields[path] ?? [], where, path).map((value, index) => {
    const entry = asObject(value, where, `${path}[${index}]`)
    const isRaw = entry.prob === undefined
    return {
      id: entry.id,
      logprob: isRaw ? entry.logprob : logarithm(entry.prob),
      isRaw,
      candidates: isRaw ? entry.top_logprobs : entry.top_probs,
      hasWideText: hasWideText(entry),
    }
  })
}

function logarithm(probability: unknown): unknown {
  return typeof probability === 'number' ? Math.log(probability) : probability
}

function hasWideText({ bytes, token }: Fields): boolean {
  if (Array.isArray(bytes)) return bytes.some(byte => Number(byte) > 127)
  // biome-ignore lint/suspicious/noControlCharactersInRegex: all of ASCII is meant
  return typeof token === 'string' && /[^\u0000-\u007f]/.test(token)
}

function checkEntries(ids: Int32Array, entries: readonly Entry[], where: string): void {
  if (entries.length !== ids.length) {
    const problem = `tokens has ${ids.length} ids but completion_probabilities ${entries.length}`
    throw wrong(where, problem)
  }
  entries.forEach(({ id, logprob }, index) => {
    const path = `completion_probabilities[${index}]`
    if (id !== ids[index]) {
      throw wrong(where, `${path} is of token ${shown(id)} but tokens has ${ids[index]} there`)
    }
    if (!isLogprob(logprob)) throw wrongLogprob(where, path, logprob)
  })
}

/**
 * Whether probabilities are missing only because a character lies across tokens: the server
 * counts such tokens but tells of them only with the last one, whose text is the whole character.
 */
function isSplit(
  ids: Int32Array,
  entries: readonly Entry[],
  { where, finish }: { readonly where: string; readonly finish: Finish },
): boolean {
  let next = 0
  let gap = 0
  for (const id of ids) {
    const entry = entries[next]
    if (entry?.id !== id) {
      gap++
      continue
    }
    if (gap > 0 && !entry.hasWideText) return false
    if (!isLogprob(entry.logprob)) {
      throw wrongLogprob(where, `completion_probabilities[${next}]`, entry.logprob)
    }
    gap = 0
    next++
  }
  return next === entries.length && (gap === 0 || finish.kind === 'length')
}

function numbersOf(entries: readonly Entry[], asked: LlamaAsked) {
  const logprobs = Float32Array.from(entries, ({ logprob }) => logprob as number)
  const isRaw = entries.some(entry => entry.isRaw)
  return { logprobs, isRaw, top: asked.width === 0 ? undefined : topOf(entries, asked) }
}

/** After sampling, fewer candidates than asked for can be left: the rest has probability 0. */
function topOf(entries: readonly Entry[], { where, width }: LlamaAsked): TopLogprobs {
  const ids = new Int32Array(entries.length * width)
  const logprobs = new Float32Array(entries.length * width).fill(-Infinity)
  entries.forEach(({ candidates }, token) => {
    const list = asArray(candidates, where, `candidates of token ${token}`)
    list.slice(0, width).forEach((value, rank) => {
      const { id, logprob, prob } = asObject(value, where, 'a candidate')
      const number = prob === undefined ? logprob : logarithm(prob)
      if (!isId(id) || typeof number !== 'number' || Number.isNaN(number)) {
        const problem = `a candidate must have a token id and a probability, got ${shown(value)}`
        throw wrong(where, problem)
      }
      ids[token * width + rank] = id
      logprobs[token * width + rank] = number
    })
  })
  return { width, ids, logprobs }
}

/** Ends a draw after the first stop id in it. */
function cut(draw: LlamaDraw, { stopIds }: LlamaAsked): LlamaDraw {
  const at = draw.ids.findIndex(id => stopIds.includes(id))
  if (at < 0) return draw
  const { top } = draw
  const length = at + 1
  return {
    ...draw,
    ids: draw.ids.subarray(0, length),
    logprobs: draw.logprobs === null ? null : draw.logprobs.subarray(0, length),
    top: top && {
      width: top.width,
      ids: top.ids.subarray(0, length * top.width),
      logprobs: top.logprobs.subarray(0, length * top.width),
    },
    finish: { kind: 'stop' },
  }
}

function checkNothingLost(event: Fields, have: number, where: string): void {
  const predicted = asCount(event.tokens_predicted, where, 'tokens_predicted')
  if (predicted === undefined || predicted <= have) return
  throw wrong(
    where,
    `the server sampled ${predicted} tokens but streamed ${have}: it does not stream tokens that ` +
      'end inside a character. Sample without stop strings, guards and streaming',
  )
}

function countsOf(fields: Fields, where: string): Pick<LlamaDraw, 'promptTokens' | 'cachedTokens'> {
  const timings = (fields.timings ?? {}) as Fields
  return {
    promptTokens: asCount(fields.tokens_evaluated, where, 'tokens_evaluated'),
    cachedTokens: asCount(timings.cache_n, where, 'timings.cache_n'),
  }
}

function readFinish({ stop_type: type, truncated }: Fields, where: string): Finish {
  if (type === 'limit') return { kind: 'length' }
  if (type !== 'eos' && type !== 'word') {
    throw wrong(where, `stop_type must be eos, word or limit, got ${shown(type)}`)
  }
  if (truncated === true) {
    throw wrong(where, 'the server shifted its context: the sample no longer continues the prompt')
  }
  return { kind: 'stop' }
}
