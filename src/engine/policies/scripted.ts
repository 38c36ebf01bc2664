import {
  type Finish,
  type Policy,
  plainCapabilities,
  type SampleKey,
  type SampleRequest,
  type TokenSample,
} from '../../base/core/policy.ts'
import { toTokenSample } from './sample.ts'

/** One answer of a script: a text, or exact ids. With a `task` it is for that task only. */
export type ScriptedAnswer =
  | string
  | { readonly text: string; readonly task?: string }
  | {
      readonly ids: ArrayLike<number>
      readonly logprobs?: ArrayLike<number>
      readonly task?: string
    }

/** How a script is played. */
export interface ScriptedOptions {
  /** Turns the text of an answer into ids, control tokens included. Needed for texts only. */
  readonly encode?: (text: string) => Int32Array
  /** @default 'scripted' */
  readonly name?: string
  /** Keeps the requests, for tests to look at. @default true */
  readonly keepsRequests?: boolean
}

/** A policy that says what it was told to say. */
export interface ScriptedPolicy extends Policy {
  /** What was asked so far. */
  readonly requests: readonly SampleRequest[]
  /** The prompts of these requests. */
  readonly prompts: readonly Int32Array[]
}

/**
 * Plays a script. The n-th sample of a member of a task gets the n-th answer for that task, or of
 * those for no task in particular if the task has none of its own; so answers do not depend on
 * what runs at the same time. A branch goes on where the script is at the turn it begins with.
 */
export function scripted(
  answers: readonly ScriptedAnswer[],
  options: ScriptedOptions = {},
): ScriptedPolicy {
  const { encode, name = 'scripted', keepsRequests = true } = options
  const script = sortByTask(answers)
  const place = makePlaces()
  const requests: SampleRequest[] = []
  const hasLogprobs = answers.every(answer => typeof answer === 'object' && 'logprobs' in answer)
  return {
    name,
    capabilities: {
      ...plainCapabilities,
      logprobs: hasLogprobs && answers.length > 0,
      images: true,
      stream: true,
    },
    requests,
    get prompts() {
      return requests.map(({ prompt }) => prompt.ids)
    },
    async sample(request, { signal }) {
      signal.throwIfAborted()
      // A path grows in place, so what is kept for later must be a copy.
      const ids = keepsRequests ? request.prompt.ids.slice() : request.prompt.ids
      if (keepsRequests) requests.push({ ...request, prompt: { ...request.prompt, ids } })
      const own = script.get(request.key.task) ?? script.get(undefined) ?? []
      const answer = own[place(request.key)]
      if (answer === undefined) throw exhausted(name, request.key, own.length)
      return play(answer, request, encode)
    },
    async [Symbol.asyncDispose]() {},
  }
}

function sortByTask(
  answers: readonly ScriptedAnswer[],
): ReadonlyMap<string | undefined, readonly ScriptedAnswer[]> {
  const script = new Map<string | undefined, ScriptedAnswer[]>()
  for (const answer of answers) {
    const task = typeof answer === 'string' ? undefined : answer.task
    const list = script.get(task)
    if (list) list.push(answer)
    else script.set(task, [answer])
  }
  return script
}

/** Counts samples by key: which answer of its script is next. */
function makePlaces(): (key: SampleKey) => number {
  const first = new Map<string, number>()
  const next = new Map<string, number>()
  return ({ task, member, branch, turn, making }) => {
    const tree = JSON.stringify([task, member, making])
    const path = JSON.stringify([task, member, branch, making])
    if (branch === '' && !first.has(tree)) first.set(tree, turn)
    const start = branch === '' ? 0 : turn - (first.get(tree) ?? 0)
    const index = next.get(path) ?? start
    next.set(path, index + 1)
    return index
  }
}

function exhausted(name: string, { task, member, turn }: SampleKey, length: number): Error {
  const has = length === 0 ? 'no answer for it' : `no answer left: all ${length} were given`
  return new Error(
    `${name}: task "${task}", member ${member}, asks at turn ${turn}, but there is ${has}.`,
  )
}

function play(
  answer: ScriptedAnswer,
  request: SampleRequest,
  encode: ScriptedOptions['encode'],
): TokenSample {
  const { ids, logprobs } = tokensOf(answer, request, encode)
  const { length, finish } = endOf(ids, request)
  return toTokenSample({
    ids: ids.subarray(0, length),
    logprobs: logprobs === null ? null : logprobs.subarray(0, length),
    basis: 'tempered',
    version: { from: 0, to: 0 },
    finish,
    usage: { prompt: request.prompt.ids.length, sampled: length, seconds: 0 },
  })
}

/** A text is a whole turn: it ends with the id that ends turns. Ids are taken as they are. */
function tokensOf(
  answer: ScriptedAnswer,
  { stopIds, stopStrings }: SampleRequest,
  encode: ScriptedOptions['encode'],
): { ids: Int32Array; logprobs: Float32Array | null } {
  if (typeof answer === 'object' && 'ids' in answer) {
    const { ids, logprobs } = answer
    return { ids: Int32Array.from(ids), logprobs: logprobs ? Float32Array.from(logprobs) : null }
  }
  const text = typeof answer === 'string' ? answer : answer.text
  if (!encode) {
    throw new Error(`The scripted answer "${text.slice(0, 60)}" is a text: give \`encode\` for it.`)
  }
  const cut = cutAtStop(text, stopStrings)
  const ids = encode(cut ?? text)
  const stop = stopIds[0]
  const isClosed = cut !== undefined || stop === undefined || stopIds.includes(ids.at(-1) ?? -1)
  if (isClosed) return { ids, logprobs: null }
  const closed = new Int32Array(ids.length + 1)
  closed.set(ids)
  closed[ids.length] = stop
  return { ids: closed, logprobs: null }
}

function cutAtStop(text: string, stops: readonly string[]): string | undefined {
  const ends = stops.flatMap(stop =>
    text.includes(stop) ? [text.indexOf(stop) + stop.length] : [],
  )
  return ends.length === 0 ? undefined : text.slice(0, Math.min(...ends))
}

/** Where an answer ends: at the limit, or where the watch stops it. */
function endOf(
  ids: Int32Array,
  { maxTokens, watch }: SampleRequest,
): { readonly length: number; readonly finish: Finish } {
  const length = Math.min(ids.length, maxTokens)
  for (let count = 1; watch && count <= length; count++) {
    const guard = watch({ ids: ids.subarray(0, count) })
    if (guard !== undefined) return { length: count, finish: { kind: 'guard', guard } }
  }
  return { length, finish: { kind: length < ids.length ? 'length' : 'stop' } }
}
