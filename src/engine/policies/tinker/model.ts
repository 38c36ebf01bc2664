import type { Call } from '../../../base/core/call.ts'
import type { TinkerApi } from './api.ts'
import { fieldsOf, textField } from './request.ts'

/** The weight matrices of a base model that an adapter changes. */
export type TinkerTarget = 'attention' | 'mlp' | 'unembed'

/** What a fresh adapter is like. */
export interface TinkerAdapter {
  readonly rank: number
  readonly seed: number
  /** Which matrices it changes. @default all that the server allows */
  readonly targets?: readonly TinkerTarget[]
}

/** A model that learns on the server: a base model with an adapter of its own. */
export interface TinkerModel {
  readonly id: string
  /** The number of the next request for it. */
  next(): number
}

/** Where models are made: a session, as far as it is needed. */
export interface ModelHome {
  readonly api: TinkerApi
  readonly id: string
  readonly baseModel: string
  nextModel(): number
  nextSampler(): number
}

/** Makes a model with a fresh adapter, which does what the base model does. */
export async function createModel(
  home: ModelHome,
  { rank, seed, targets }: TinkerAdapter,
  call: Call,
): Promise<TinkerModel> {
  const body = {
    type: 'create_model',
    session_id: home.id,
    model_seq_id: home.nextModel(),
    base_model: home.baseModel,
    lora_config: { rank, seed, ...(targets && targetFlags(targets)) },
  }
  const answer = await home.api.result('create_model', body, call)
  let requests = 0
  // Requests of a model are numbered from 1 on.
  return { id: textField('create_model', answer, 'model_id'), next: () => ++requests }
}

function targetFlags(targets: readonly TinkerTarget[]) {
  return {
    train_attn: targets.includes('attention'),
    train_mlp: targets.includes('mlp'),
    train_unembed: targets.includes('unembed'),
  }
}

/** Weights to sample from: a sampling session, or a path to open one with. */
export type PublishedWeights = { readonly samplingSession: string } | { readonly path: string }

/** Makes a model's current weights available for sampling. */
export async function publish(
  home: ModelHome,
  model: TinkerModel,
  call: Call,
): Promise<PublishedWeights> {
  const body = {
    type: 'save_weights_for_sampler',
    model_id: model.id,
    sampling_session_seq_id: home.nextSampler(),
    seq_id: model.next(),
  }
  const answer = await home.api.result('save_weights_for_sampler', body, call)
  const { path, sampling_session_id: id } = fieldsOf('save_weights_for_sampler', answer)
  if (typeof id === 'string') return { samplingSession: id }
  if (typeof path === 'string') return { path }
  throw new Error('save_weights_for_sampler gave neither a path nor a sampling_session_id')
}

/** Frees a model's place on the server; if the request fails, the server's own timeout frees it. */
export async function unload(home: ModelHome, model: TinkerModel): Promise<void> {
  const call = { signal: AbortSignal.timeout(10_000) }
  const body = { type: 'unload_model', model_id: model.id }
  await home.api.send({ path: 'unload_model', body }, call).catch(() => {})
}
