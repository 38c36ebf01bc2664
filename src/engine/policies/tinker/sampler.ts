import type { Call } from '../../../base/core/call.ts'
import {
  type Policy,
  plainCapabilities,
  type SampleRequest,
  type ScoreOptions,
  type Scores,
  type TokenSample,
} from '../../../base/core/policy.ts'
import { pause } from '../../../base/core/process/timer.ts'
import { type LogprobBasis, sampled, type VersionRange } from '../../../base/core/segment.ts'
import type { SubmitOptions, TinkerApi } from './api.ts'
import { readSample, type SampleOutput, sampleOf } from './messages.ts'
import type { Provenance } from './provenance.ts'
import { TinkerError, type TinkerRequest } from './request.ts'
import type { TinkerServerKind } from './server-kind.ts'

/** What a sampler needs of its session. */
export interface SamplerSession {
  readonly api: TinkerApi
  readonly url: string
  readonly baseModel: string
  readonly kind: TinkerServerKind
  readonly provenance: Provenance
  version(): number
  /** A sampler of the base model, for samples before any weights were published. */
  openBase(call: Call): Promise<string>
  /** A sampler of a fresh adapter, which equals the base model, for servers that refuse to sample that. */
  openFresh(call: Call): Promise<string>
  close(): PromiseLike<void>
}

/** The policy of a session, and the way to give it other weights. */
export interface Sampler {
  readonly policy: Policy
  /** Samples come from this sampling session from now on. */
  use(samplingSession: string): void
}

/** A sampling session and the number of its next request. */
interface Sampled {
  readonly id: string
  readonly isBase: boolean
  requests: number
  /** The session used instead, once the server has refused this one. */
  instead?: Promise<Sampled>
}

interface State extends SamplerSession {
  current: Promise<Sampled> | undefined
  /** No sample is sent before this time, because the server was too busy. */
  pausedUntil: number
}

/** Bytes above which a body waits longer after the server was too busy. */
const largeBody = 128 * 1024

/** Opens the sampler of a session. */
export function makeSampler(session: SamplerSession): Sampler {
  const state: State = { ...session, current: undefined, pausedUntil: 0 }
  const { url, baseModel, kind } = session
  const policy: Policy = {
    name: `tinker:${url}`,
    capabilities: {
      ...plainCapabilities,
      seed: kind.usesSeeds,
      version: true,
      several: true,
      score: kind.scores,
    },
    sample: async (request, call) => (await draw(state, { request, count: 1 }, call))[0]!,
    // The samples of one request share its seed: the server derives one for each.
    sampleSeveral: (request, seeds, call) =>
      draw(state, { request: { ...request, seed: seeds[0]! }, count: seeds.length }, call),
    ...(kind.scores && {
      score: (ids, from, options, call) => score(state, { ids, from, options }, call),
    }),
    describe: async () => ({ model: baseModel }),
    async [Symbol.asyncDispose]() {
      await session.close()
    },
  }
  return {
    policy,
    use(id) {
      state.current = Promise.resolve({ id, isBase: false, requests: 0 })
    },
  }
}

async function draw(
  state: State,
  { request, count }: { readonly request: SampleRequest; readonly count: number },
  call: Call,
): Promise<readonly TokenSample[]> {
  call.signal.throwIfAborted()
  const { prompt, sampling, seed } = request
  if (sampling.minP > 0) throw new Error('Tinker has no min-p: leave --min-p at 0')
  const from = state.version()
  const started = performance.now()
  const parameters = {
    max_tokens: request.maxTokens,
    seed,
    ...stopOf(request),
    temperature: sampling.temperature,
    top_p: sampling.topP,
    top_k: sampling.topK === 0 ? -1 : sampling.topK,
  }
  const body = { ...promptOf(prompt.ids), num_samples: count, sampling_params: parameters }
  const { sequences, cached, names } = await ask(state, body, call)
  if (sequences.length !== count) {
    throw new Error(`asample gave ${sequences.length} sequences where ${count} were asked for`)
  }
  const seconds = (performance.now() - started) / 1000
  return sequences
    .map(each => cutAt(each, request))
    .map((sequence, index) => {
      const name = names[index]
      if (name !== undefined) state.provenance.remember(prompt.ids, sequence.tokens, name)
      return sequence
    })
    .map(sequence =>
      toSample(sequence, {
        basis: basisAt(sampling.temperature),
        version: { from, to: state.version() },
        usage: {
          prompt: prompt.ids.length,
          sampled: sequence.tokens.length,
          ...(cached !== undefined && { cached }),
          seconds,
          server: state.url,
        },
      }),
    )
}

type Sequence = SampleOutput['sequences'][number]

function toSample(
  { tokens, logprobs, finish }: Sequence,
  about: {
    readonly basis: LogprobBasis
    readonly version: VersionRange
    readonly usage: TokenSample['usage']
  },
): TokenSample {
  const { basis, version, usage } = about
  return {
    kind: 'tokens',
    segment: sampled({ ids: tokens, logprobs, basis, version }),
    finish: { kind: finish },
    usage,
  }
}

function promptOf(ids: Int32Array) {
  return { prompt: { chunks: [{ type: 'encoded_text', tokens: Array.from(ids) }] } }
}

/**
 * Where a sample ends: the API takes either texts or ids; with texts, the sample is cut at ids afterwards. Without
 * stops the field is left out, as an empty list would turn the model's own end off.
 */
function stopOf({ stopIds, stopStrings }: SampleRequest): { readonly stop?: readonly unknown[] } {
  if (stopStrings.length > 0) return { stop: stopStrings }
  return stopIds.length > 0 ? { stop: stopIds } : {}
}

/** Ends a sequence at an id that ends turns, if only texts could be sent to the server. */
function cutAt(sequence: Sequence, { stopIds, stopStrings }: SampleRequest): Sequence {
  if (stopStrings.length === 0) return sequence
  const { tokens, logprobs } = sequence
  const end = tokens.findIndex(id => stopIds.includes(id)) + 1
  if (end === 0) return sequence
  return {
    tokens: tokens.slice(0, end),
    logprobs: logprobs?.slice(0, end) ?? null,
    finish: 'stop',
  }
}

/** Tinker's log-probabilities are of the model itself; at temperature 1 that is what was drawn from. */
function basisAt(temperature: number): LogprobBasis {
  return temperature === 1 ? 'tempered' : 'raw'
}

/** The log-probabilities of a prompt, which the server returns together with one sampled token. */
async function score(
  state: State,
  scored: {
    readonly ids: Int32Array
    readonly from: number
    readonly options: ScoreOptions
  },
  call: Call,
): Promise<Scores> {
  const { ids, from, options } = scored
  if (from < 1 || from > ids.length) {
    throw new RangeError(`cannot score from token ${from} of ${ids.length}`)
  }
  const before = state.version()
  const body = {
    ...promptOf(ids),
    num_samples: 1,
    prompt_logprobs: true,
    sampling_params: { max_tokens: 1, seed: 0, temperature: 1, top_p: 1, top_k: -1 },
  }
  const { promptLogprobs } = await ask(state, body, call)
  // Some servers list the first token, which has no log-probability, and some leave it out.
  const missing = ids.length - (promptLogprobs?.length ?? 0)
  if (!promptLogprobs || missing < 0 || missing > 1) {
    throw new Error('asample gave no prompt_logprobs: this server cannot score given tokens')
  }
  return {
    logprobs: promptLogprobs.slice(from - missing),
    basis: basisAt(options.temperature),
    version: { from: before, to: state.version() },
  }
}

/** What was sampled, and the server's names of the sequences, if it gives them. */
type Asked = SampleOutput & { readonly names: readonly string[] }

async function ask(state: State, asked: object, call: Call): Promise<Asked> {
  const sampler = await currentOf(state, call)
  try {
    return await askOf(state, { sampler: (await sampler.instead) ?? sampler, asked }, call)
  } catch (error) {
    if (!sampler.isBase || !isUnknownModel(error)) throw error
    return await askOf(state, { sampler: await insteadOf(state, sampler, call), asked }, call)
  }
}

/** Many samples may be refused at once: the first opens the replacement that all of them use. */
async function insteadOf(state: State, base: Sampled, call: Call): Promise<Sampled> {
  base.instead ??= state.openFresh(call).then(id => ({ id, isBase: false, requests: 0 }))
  try {
    return await base.instead
  } catch (error) {
    delete base.instead
    throw error
  }
}

async function currentOf(state: State, call: Call): Promise<Sampled> {
  state.current ??= state.openBase(call).then(id => ({ id, isBase: true, requests: 0 }))
  const { current } = state
  try {
    return await current
  } catch (error) {
    if (state.current === current) state.current = undefined
    throw error
  }
}

/** SkyRL with one set of GPUs for both serves adapters only: a base model is unknown to it. */
function isUnknownModel(error: unknown): boolean {
  return error instanceof TinkerError && error.code < 500 && /unknown model/i.test(error.message)
}

async function askOf(
  state: State,
  { sampler, asked }: { readonly sampler: Sampled; readonly asked: object },
  call: Call,
): Promise<Asked> {
  let names: readonly string[] = []
  const heard = ({ sample_sequence_ids: ids }: Readonly<Record<string, unknown>>): void => {
    names = Array.isArray(ids) ? ids.map(String) : []
  }
  const submit = (): Promise<string> => {
    const own = { sampling_session_id: sampler.id, seq_id: sampler.requests++ }
    const body = { type: 'sample', ...asked, ...own }
    const request = { path: 'asample', body, headers: backpressure }
    return submitGently(state, { request, heard }, call)
  }
  const answer = await state.api.resultOf({ path: 'asample', submit, protobuf: true }, call)
  return { ...(answer instanceof Uint8Array ? readSample(answer) : sampleOf(answer)), names }
}

const backpressure = { 'x-tinker-sampling-backpressure': '1' }

/** Sends a sample; if the server is too busy, all samples of the session wait. */
async function submitGently(
  state: State,
  { request, heard }: { readonly request: TinkerRequest } & Pick<SubmitOptions, 'heard'>,
  call: Call,
): Promise<string> {
  for (;;) {
    const wait = state.pausedUntil - performance.now()
    if (wait > 0) await pause(wait, call.signal)
    try {
      return await state.api.submit(request, call, { busy: 'throw', ...(heard && { heard }) })
    } catch (error) {
      if (!(error instanceof TinkerError) || error.code !== 429) throw error
      const size = JSON.stringify(request.body).length
      const rest = state.api.pauseMs * (size > largeBody ? 10 : 2)
      state.pausedUntil = Math.max(state.pausedUntil, performance.now() + rest)
    }
  }
}
