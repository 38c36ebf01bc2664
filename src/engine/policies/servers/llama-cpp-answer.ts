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

/** What a llama.cpp server drew, checked. */
export interface LlamaDraw {
  readonly ids: Int32Array
  /** NaN if a character spans several tokens: the server gives a number for the last one only. */
  readonly logprobs: Float32Array
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
  /** Texts to end a whole answer behind, if the server was not asked to look for them. */
  readonly stopStrings: readonly string[]
}

/** Reads a whole answer. */
export function readLlamaAnswer(answer: unknown, asked: LlamaAsked): LlamaDraw {
  const { where } = asked
  const fields = asObject(answer, where, 'the answer')
  const ids = asIds(fields.tokens, where, 'tokens')
  const finish = readFinish(fields, where)
  const entries = entriesOf(fields, where)
  const places = alignEntries(ids, entries, { where, mayEndOpen: finish.kind === 'length' })
  const draw = {
    ids,
    finish,
    ...countsOf(fields, where),
    ...numbersOf(ids, { entries, places }, asked),
  }
  return cut(draw, endAtStop({ ids, entries, places }, asked))
}

/** Puts the events of one streamed sample together. */
export interface LlamaStream {
  /** Takes one event's data; returns whether it brought tokens. */
  take(data: string): boolean
  /** A view of the ids so far. */
  readonly ids: Int32Array
  /** The whole draw, or, if some tokens were not streamed, how many were sampled. */
  finish(stopped?: Finish): LlamaDraw | LossyDraw
}

/** A sample of which the stream lost tokens: those that end inside a character. */
export interface LossyDraw {
  readonly lost: true
  readonly finish: Finish
  readonly predicted: number
  /** What came before the first loss. */
  readonly before: LlamaDraw
}

/** Opens a stream: every event carries only what is new. */
export function makeLlamaStream(asked: LlamaAsked): LlamaStream {
  const { where } = asked
  const buffer = new TokenBuffer()
  const entries: Entry[] = []
  let last: Fields = {}
  let whole: number | undefined

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
      const predicted = asCount(last.tokens_predicted, where, 'tokens_predicted') ?? 0
      if (predicted > buffer.length) whole ??= buffer.length - ids.length
      return ids.length > 0
    },
    get ids() {
      return buffer.ids
    },
    finish(stopped) {
      const finish = last.stop === true ? readFinish(last, where) : stopped
      if (!finish) throw wrong(where, 'the stream ended without a last event that has "stop": true')
      const counts = countsOf(last, where)
      const upTo = (length: number): LlamaDraw => {
        const ids = buffer.ids.subarray(0, length)
        const found = { entries: entries.slice(0, length), places: Int32Array.from(ids.keys()) }
        const draw = { ids, finish, ...counts, ...numbersOf(ids, found, asked) }
        return cut(draw, endAtStop({ ids, ...found }, { ...asked, stopStrings: [] }))
      }
      if (whole === undefined) return upTo(buffer.length)
      const predicted = asCount(last.tokens_predicted, where, 'tokens_predicted')!
      return { lost: true, finish, predicted, before: upTo(whole) }
    },
  }
}

/** One sampled token as the server reports it. */
interface Entry {
  readonly id: unknown
  /** A log-probability, or with `isRaw` false the logarithm of a probability. */
  readonly logprob: unknown
  readonly isRaw: boolean
  readonly candidates: unknown
  /** The text of the token, or of the whole character that ends with it, as UTF-8. */
  readonly bytes: Buffer
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
      bytes: bytesOf(entry),
    }
  })
}

function logarithm(probability: unknown): unknown {
  return typeof probability === 'number' ? Math.log(probability) : probability
}

function bytesOf({ bytes, token }: Fields): Buffer {
  if (Array.isArray(bytes)) return Buffer.from(bytes.map(Number))
  return Buffer.from(typeof token === 'string' ? token : '')
}

/** Whether a text can be a character that spans several tokens. */
const isWide = ({ bytes }: Entry): boolean => bytes.some(byte => byte > 127)

function checkEntries(ids: Int32Array, entries: readonly Entry[], where: string): void {
  if (entries.length !== ids.length) throw wrongCount(ids, entries, where)
  entries.forEach((entry, index) => {
    if (entry.id !== ids[index]) {
      const path = `completion_probabilities[${index}]`
      throw wrong(
        where,
        `${path} is of token ${shown(entry.id)} but tokens has ${ids[index]} there`,
      )
    }
    checkNumber(entry, index, where)
  })
}

function checkNumber({ logprob }: Entry, index: number, where: string): void {
  if (!isLogprob(logprob)) throw wrongLogprob(where, `completion_probabilities[${index}]`, logprob)
}

function wrongCount(ids: Int32Array, entries: readonly Entry[], where: string): Error {
  const problem = `tokens has ${ids.length} ids but completion_probabilities ${entries.length}`
  return wrong(where, problem)
}

/**
 * The token that each entry belongs to. For a character that spans several tokens the server reports
 * only the last one, with the whole character as its text; a sample may also end inside one. If an
 * entry could belong to several tokens (an emoji of two equal tokens after the same emoji), its place
 * is −1: no number is better than another token's.
 */
function alignEntries(
  ids: Int32Array,
  entries: readonly Entry[],
  { where, mayEndOpen }: { readonly where: string; readonly mayEndOpen: boolean },
): Int32Array {
  if (entries.length === ids.length) {
    checkEntries(ids, entries, where)
    return Int32Array.from(ids.keys())
  }
  const missing = ids.length - entries.length
  if (missing < 0) throw wrongCount(ids, entries, where)
  for (const [index, entry] of entries.entries()) checkNumber(entry, index, where)
  const places = reach(ids, entries, missing)
  const last = entries.length - 1
  // Only a sample that was cut may leave tokens behind its last entry.
  const ends = new Set(places[last] ?? [])
  if (!mayEndOpen) for (const place of ends) if (place !== ids.length - 1) ends.delete(place)
  const found = narrow(entries, places, ends)
  if (!found || (entries.length === 0 && !mayEndOpen)) throw wrongCount(ids, entries, where)
  return found
}

/** For each entry the places it can have behind those before it; at most `missing` tokens later. */
function reach(
  ids: Int32Array,
  entries: readonly Entry[],
  missing: number,
): readonly (readonly number[])[] {
  let before: readonly number[] = [-1]
  return entries.map((entry, index) => {
    const wide = isWide(entry)
    const places: number[] = []
    for (let place = index; place <= index + missing; place++) {
      if (ids[place] !== entry.id) continue
      if (before.some(each => (wide ? each < place : each === place - 1))) places.push(place)
    }
    before = places
    return places
  })
}

/** Removes, from the end, places that nothing after them can follow; −1 if several are left. */
function narrow(
  entries: readonly Entry[],
  places: readonly (readonly number[])[],
  ends: ReadonlySet<number>,
): Int32Array | undefined {
  const found = new Int32Array(entries.length)
  let behind: readonly number[] = [...ends]
  for (let index = entries.length - 1; index >= 0; index--) {
    const wide = index + 1 < entries.length && isWide(entries[index + 1]!)
    const follows = (place: number): boolean =>
      index === entries.length - 1
        ? ends.has(place)
        : behind.some(next => (wide ? next > place : next === place + 1))
    const left = places[index]!.filter(follows)
    if (left.length === 0) return undefined
    found[index] = left.length === 1 ? left[0]! : -1
    behind = left
  }
  return found
}

/** Entries, and the places of their tokens. */
interface Aligned {
  readonly entries: readonly Entry[]
  readonly places: Int32Array
}

function numbersOf(ids: Int32Array, aligned: Aligned, asked: LlamaAsked) {
  const logprobs = new Float32Array(ids.length).fill(Number.NaN)
  aligned.entries.forEach(({ logprob }, index) => {
    const place = aligned.places[index]!
    if (place >= 0) logprobs[place] = logprob as number
  })
  const isRaw = aligned.entries.some(entry => entry.isRaw)
  const top = asked.width === 0 ? undefined : topOf(ids, aligned, asked)
  return { logprobs, isRaw, top }
}

/** After sampling, fewer candidates than asked for can be left: the rest has probability 0. */
function topOf(
  { length }: Int32Array,
  { entries, places }: Aligned,
  { where, width }: LlamaAsked,
): TopLogprobs {
  const ids = new Int32Array(length * width)
  const logprobs = new Float32Array(length * width).fill(-Infinity)
  entries.forEach(({ candidates }, index) => {
    const token = places[index]!
    if (token < 0) return
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

/** How many tokens there are up to and with the first stop id or stop string; undefined: none. */
function endAtStop(
  { ids, entries, places }: Aligned & { readonly ids: Int32Array },
  { stopIds, stopStrings }: LlamaAsked,
): number | undefined {
  const byId = ids.findIndex(id => stopIds.includes(id)) + 1 || undefined
  const byText = stopStrings.length === 0 ? undefined : endOfText(stopStrings, { entries, places })
  return byId === undefined || byText === undefined ? (byId ?? byText) : Math.min(byId, byText)
}

function endOfText(stops: readonly string[], { entries, places }: Aligned): number | undefined {
  const wanted = stops.map(stop => Buffer.from(stop))
  let text = Buffer.alloc(0)
  for (const [index, { bytes }] of entries.entries()) {
    text = Buffer.concat([text, bytes])
    // An entry without a certain place counts for the token before the next certain one.
    if (wanted.some(stop => text.includes(stop))) return placeFrom(places, index) + 1
  }
  return undefined
}

function placeFrom(places: Int32Array, index: number): number {
  const sure = places.findIndex((place, at) => at >= index && place >= 0)
  return sure < 0 ? places.length - 1 : places[sure]! - (sure - index)
}

/** Ends a draw after so many tokens. */
function cut(draw: LlamaDraw, length: number | undefined): LlamaDraw {
  if (length === undefined) return draw
  const { top } = draw
  return {
    ...draw,
    ids: draw.ids.subarray(0, length),
    logprobs: draw.logprobs.subarray(0, length),
    top: top && {
      width: top.width,
      ids: top.ids.subarray(0, length * top.width),
      logprobs: top.logprobs.subarray(0, length * top.width),
    },
    finish: { kind: 'stop' },
  }
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
