import type { Call } from '../../core/call.ts'
import {
  type Policy,
  plainCapabilities,
  type SampleRequest,
  type TokenSample,
} from '../../core/policy.ts'
import { type LogprobBasis, sampled } from '../../core/segment.ts'
import { fieldsOf, openTinkerApi, type TinkerApi, type TinkerApiOptions } from './tinker-api.ts'

/**
 * A session with a Tinker server: the policy that samples from it and the trainer that changes its
 * weights share one, so that after every step samples come from what was learned.
 */
export interface TinkerSession extends AsyncDisposable {
  readonly url: string
  readonly api: TinkerApi
  readonly id: string
  readonly baseModel: string
  /** How many times the weights were changed. */
  readonly version: number
  readonly policy: Policy
  /** Samples come from these weights from now on. */
  sampleFrom(weights: SamplerWeights, call: Call): Promise<void>
}

/** Weights that can be sampled from, as saving them for a sampler gives them. */
export interface SamplerWeights {
  readonly version: number
  readonly samplingSession?: string
  readonly path?: string
}

/** How a session is opened. */
export interface TinkerSessionOptions extends TinkerApiOptions {
  /** The base model. @default the first that the server supports */
  readonly baseModel?: string
}

/** Seconds between signs of life, without which a server may end a session. */
const heartbeatSeconds = 10

/** A policy that samples in a session; the trainer that changes its weights works in the same. */
export interface TinkerPolicy extends Policy {
  readonly session: TinkerSession
}

/** The session with this server that a policy samples in, for the trainer that is to share it. */
export function tinkerSessionOf(policy: Policy, url: string): TinkerSession | undefined {
  const { session } = policy as Partial<TinkerPolicy>
  return session && withoutSlash(session.url) === withoutSlash(url) ? session : undefined
}

/** Opens a session, with a sampler of the base model. */
export async function openTinkerSession(
  url: string,
  options: TinkerSessionOptions = {},
): Promise<TinkerSession> {
  const api = openTinkerApi(url, options)
  const call = { signal: AbortSignal.timeout(60_000) }
  const baseModel = options.baseModel ?? (await firstModel(api, call))
  const opened = await api.post(
    'create_session',
    { tags: ['espalier'], user_metadata: {}, sdk_version: '0.36.0', type: 'create_session' },
    call,
  )
  const id = text('create_session', opened, 'session_id')
  const state = { version: 0, samplers: 0, requests: 0, sampler: '' }
  const openSampler = async (model: object, own: Call): Promise<string> => {
    const body = {
      session_id: id,
      sampling_session_seq_id: state.samplers++,
      type: 'create_sampling_session',
      ...model,
    }
    const answer = await api.post('create_sampling_session', body, own)
    return text('create_sampling_session', answer, 'sampling_session_id')
  }
  state.sampler = await openSampler({ base_model: baseModel }, call)
  const beat = setInterval(() => {
    const quiet = { signal: AbortSignal.timeout(heartbeatSeconds * 1000) }
    api
      .post('session_heartbeat', { session_id: id, type: 'session_heartbeat' }, quiet)
      .catch(() => {
        // A sign of life that is lost is followed by the next one.
      })
  }, heartbeatSeconds * 1000).unref()
  const session: TinkerSession = {
    url,
    api,
    id,
    baseModel,
    get version() {
      return state.version
    },
    policy: tinkerPolicy({
      api,
      state,
      baseModel,
      url,
      close: () => session[Symbol.asyncDispose](),
    }),
    async sampleFrom({ version, samplingSession, path }, own) {
      state.sampler = samplingSession ?? (await openSampler({ model_path: path }, own))
      state.version = version
    },
    async [Symbol.asyncDispose]() {
      clearInterval(beat)
    },
  }
  return session
}

/** The policy of `tinker:URL`; its session ends with it. */
export async function openTinkerPolicy(
  url: string,
  { key, servedModel }: { readonly key?: string; readonly servedModel?: string },
): Promise<TinkerPolicy> {
  const session = await openTinkerSession(url, {
    ...(key !== undefined && { key }),
    ...(servedModel !== undefined && { baseModel: servedModel }),
  })
  return { ...session.policy, session }
}

const withoutSlash = (url: string): string => url.replace(/\/+$/, '')

async function firstModel(api: TinkerApi, call: Call): Promise<string> {
  const answer = fieldsOf('get_server_capabilities', await api.get('get_server_capabilities', call))
  const models = Array.isArray(answer.supported_models) ? answer.supported_models : []
  const name = (models[0] as { model_name?: unknown } | undefined)?.model_name
  if (typeof name === 'string') return name
  throw new Error('the server names no model it supports: say which with --served-model')
}

function text(path: string, answer: unknown, name: string): string {
  const value = fieldsOf(path, answer)[name]
  if (typeof value === 'string') return value
  throw new Error(`${path} gave no ${name}: ${JSON.stringify(answer)?.slice(0, 200)}`)
}

interface Sampler {
  readonly api: TinkerApi
  readonly url: string
  readonly baseModel: string
  readonly state: { readonly version: number; readonly sampler: string; requests: number }
  close(): PromiseLike<void>
}

function tinkerPolicy(sampler: Sampler): Policy {
  const { url, baseModel } = sampler
  return {
    name: `tinker:${url}`,
    capabilities: { ...plainCapabilities, seed: true, version: true },
    sample: (request, call) => sampleFrom(sampler, request, call),
    describe: async () => ({ model: baseModel }),
    async [Symbol.asyncDispose]() {
      await sampler.close()
    },
  }
}

async function sampleFrom(
  { api, state, url }: Sampler,
  request: SampleRequest,
  call: Call,
): Promise<TokenSample> {
  const { prompt, sampling, maxTokens, seed, stopIds, stopStrings } = request
  if (sampling.minP > 0) throw new Error('Tinker has no min-p: leave --min-p at 0')
  if (stopStrings.length > 0) throw new Error('Tinker stops at ids: leave --stop out')
  const from = state.version
  const started = performance.now()
  const answer = await api.result(
    'asample',
    {
      type: 'sample',
      num_samples: 1,
      prompt: { chunks: [{ type: 'encoded_text', tokens: Array.from(prompt.ids) }] },
      sampling_params: {
        max_tokens: maxTokens,
        seed,
        stop: stopIds,
        temperature: sampling.temperature,
        top_p: sampling.topP,
        top_k: sampling.topK === 0 ? -1 : sampling.topK,
      },
      sampling_session_id: state.sampler,
      seq_id: state.requests++,
    },
    call,
  )
  const sequence = sequenceOf(answer)
  return {
    kind: 'tokens',
    segment: sampled({
      ids: Int32Array.from(sequence.tokens),
      logprobs: sequence.logprobs ? Float32Array.from(sequence.logprobs) : null,
      basis: basisAt(sampling.temperature),
      version: { from, to: state.version },
    }),
    finish: { kind: sequence.stop_reason === 'length' ? 'length' : 'stop' },
    usage: {
      prompt: prompt.ids.length,
      sampled: sequence.tokens.length,
      seconds: (performance.now() - started) / 1000,
      server: url,
    },
  }
}

/** Tinker's log-probabilities are of the model itself; at temperature 1 that is what was drawn from. */
function basisAt(temperature: number): LogprobBasis {
  return temperature === 1 ? 'tempered' : 'raw'
}

interface SampledSequence {
  readonly tokens: readonly number[]
  readonly logprobs: readonly number[] | null
  readonly stop_reason: string
}

function sequenceOf(answer: unknown): SampledSequence {
  const { sequences } = fieldsOf('asample', answer)
  const [first] = Array.isArray(sequences) ? (sequences as unknown[]) : []
  const { tokens, logprobs, stop_reason } = fieldsOf('asample: sequences[0]', first)
  if (!Array.isArray(tokens) || !tokens.every(Number.isInteger)) {
    throw new Error('asample gave a sequence without tokens')
  }
  return {
    tokens: tokens as number[],
    logprobs: Array.isArray(logprobs) ? (logprobs as number[]) : null,
    stop_reason: String(stop_reason),
  }
}
