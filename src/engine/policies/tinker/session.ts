import type { Call } from '../../../base/core/call.ts'
import type { Policy } from '../../../base/core/policy.ts'
import { openTinkerApi, type TinkerApi, type TinkerApiOptions } from './api.ts'
import {
  createModel,
  type ModelHome,
  type PublishedWeights,
  publish,
  type TinkerModel,
  unload,
} from './model.ts'
import { makeProvenance, type Provenance } from './provenance.ts'
import { TinkerError, textField } from './request.ts'
import { makeSampler } from './sampler.ts'
import {
  findServerKind,
  type TinkerServerKind,
  type TinkerServerName,
  tinkerServers,
} from './server-kind.ts'

/**
 * A session with a Tinker server. The policy that samples and the trainer that changes the weights
 * share one, so that after every step samples come from the new weights.
 */
export interface TinkerSession extends AsyncDisposable, ModelHome {
  readonly url: string
  readonly kind: TinkerServerKind
  /** Whether bodies of passes should be compressed: the server says so. */
  readonly zstd: boolean
  /** Which of the server's sequences tokens come from. */
  readonly provenance: Provenance
  /** How many times the weights were changed. */
  readonly version: number
  readonly policy: Policy
  /** Samples come from these weights from now on. */
  sampleFrom(weights: PublishedWeights, version: number, call: Call): Promise<void>
}

/** How a session is opened. */
export interface TinkerSessionOptions extends TinkerApiOptions {
  /** The base model. @default the first that the server supports */
  readonly baseModel?: string
  /** Which program answers there. @default what it is found to be */
  readonly server?: TinkerServerName
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

/** Opens a session; the first sample opens a sampler of the base model, if none was published. */
export async function openTinkerSession(
  url: string,
  options: TinkerSessionOptions = {},
): Promise<TinkerSession> {
  const call = { signal: AbortSignal.timeout(60_000) }
  // Only a few seconds of retries here: a wrong address should fail soon.
  const opening = openTinkerApi(url, { retrySeconds: 5, ...options })
  const baseModel = options.baseModel ?? (await firstModel(opening, call))
  const zstd = await wantsZstd(opening, call)
  const kind = options.server
    ? tinkerServers[options.server]
    : await findServerKind(opening.url, call)
  const opened = await opening.post(
    'create_session',
    { tags: ['espalier'], user_metadata: {}, sdk_version, type: 'create_session' },
    call,
  )
  const id = textField('create_session', opened, 'session_id')
  return startSession({ url, api: openTinkerApi(url, options), id, baseModel, kind, zstd })
}

/** The version of the published SDK whose requests these are. */
const sdk_version = '0.36.0'

type Opened = Pick<TinkerSession, 'url' | 'api' | 'id' | 'baseModel' | 'kind' | 'zstd'>

function startSession(opened: Opened): TinkerSession {
  const { api, id, baseModel, kind } = opened
  // One counter for all samplers, since servers name samplers by it.
  const state = { version: 0, samplers: 0, models: 0, fresh: [] as TinkerModel[] }
  const openSamplingSession = async (model: object, own: Call): Promise<string> => {
    const body = {
      session_id: id,
      sampling_session_seq_id: session.nextSampler(),
      type: 'create_sampling_session',
      ...model,
    }
    const answer = await api.post('create_sampling_session', body, own)
    return textField('create_sampling_session', answer, 'sampling_session_id')
  }
  const samplerOf = async (weights: PublishedWeights, own: Call): Promise<string> =>
    'path' in weights
      ? await openSamplingSession({ model_path: weights.path }, own)
      : weights.samplingSession
  const heart = startHeartbeat(api, id)
  const provenance = makeProvenance()
  const sampler = makeSampler({
    ...opened,
    provenance,
    version: () => state.version,
    openBase: own => openSamplingSession({ base_model: baseModel }, own),
    async openFresh(own) {
      const model = await createModel(session, { rank: kind.rank, seed: 0 }, own)
      state.fresh.push(model)
      return await samplerOf(await publish(session, model, own), own)
    },
    close: () => session[Symbol.asyncDispose](),
  })
  const session: TinkerSession = {
    ...opened,
    provenance,
    get version() {
      return state.version
    },
    policy: sampler.policy,
    nextSampler: () => state.samplers++,
    nextModel: () => state.models++,
    async sampleFrom(weights, version, own) {
      sampler.use(await samplerOf(weights, own))
      state.version = version
    },
    async [Symbol.asyncDispose]() {
      heart.stop()
      for (const model of state.fresh) await unload(session, model)
      await finish(api, id)
    },
  }
  return session
}

/** Tells the server that the session lives, until it says that the session is over. */
function startHeartbeat(api: TinkerApi, id: string) {
  const beat = setInterval(() => {
    const quiet = { signal: AbortSignal.timeout(heartbeatSeconds * 1000) }
    const body = { session_id: id, type: 'session_heartbeat' }
    api.send({ path: 'session_heartbeat', body }, quiet).catch(error => {
      // A lost heartbeat is followed by the next; 410 means that the session is over.
      if (error instanceof TinkerError && error.code === 410) clearInterval(beat)
    })
  }, heartbeatSeconds * 1000).unref()
  return { stop: () => clearInterval(beat) }
}

/** Says that the session is over; servers that know no end forget it after a while. */
async function finish(api: TinkerApi, id: string): Promise<void> {
  const call = { signal: AbortSignal.timeout(5000) }
  await api.send({ path: `sessions/${id}/finish`, body: {} }, call).catch(() => {})
}

/** The policy of `tinker:URL`; its session ends with it. */
export async function openTinkerPolicy(
  url: string,
  options: { readonly key?: string; readonly servedModel?: string; readonly server?: string },
): Promise<TinkerPolicy> {
  const { key, servedModel, server } = options
  const session = await openTinkerSession(url, {
    ...(key !== undefined && { key }),
    ...(servedModel !== undefined && { baseModel: servedModel }),
    ...(server !== undefined && { server: server as TinkerServerName }),
  })
  return { ...session.policy, session }
}

const withoutSlash = (url: string): string => url.replace(/(?<!\/)\/+$/, '')

async function firstModel(api: TinkerApi, call: Call): Promise<string> {
  const answer = await api.get('get_server_capabilities', call)
  const models = Array.isArray(answer.supported_models) ? answer.supported_models : []
  const name = (models[0] as { model_name?: unknown } | undefined)?.model_name
  if (typeof name === 'string') return name
  throw new Error('the server names no model it supports: say which with --served-model')
}

/** Whether the server asks its clients to compress; servers without this endpoint do not. */
async function wantsZstd(api: TinkerApi, call: Call): Promise<boolean> {
  try {
    const body = { sdk_version }
    const config = await api.send({ path: 'client/config', body }, call)
    return !(config instanceof Uint8Array) && config.proto_compress_fwdbwd === true
  } catch {
    call.signal.throwIfAborted()
    return false
  }
}
