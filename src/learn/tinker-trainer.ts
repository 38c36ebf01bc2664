import { mkdir, readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import type { Call } from '../core/call.ts'
import type { LeafWeighting } from '../core/credit.ts'
import type { Group } from '../core/group.ts'
import type { Trainer, TrainerStep } from '../core/trainer.ts'
import { fieldsOf } from '../policies/servers/tinker-api.ts'
import type { TinkerSession } from '../policies/servers/tinker-session.ts'
import { defaults } from '../settings/settings.ts'
import { type Datum, toDatum } from '../sinks/formats/tinker.ts'
import { groupRows, type MemberRow } from '../sinks/row-record.ts'
import { type FactorOptions, rowFactors } from './row-factors.ts'

/** How a model behind a Tinker server learns. */
export interface TinkerTrainerOptions {
  /** @default 4e-4 */
  readonly learningRate?: number
  /** `ppo`, `grpo`, `bnpo`, `cispo` or `importance-sampling`. @default 'ppo' */
  readonly loss?: string
  /**
   * What the server divides a row's sum by of its own accord. Tinker sums (`nothing`); SkyRL's JAX
   * server divides by the row's length (`rows`), which is then multiplied in again.
   * @default 'nothing'
   */
  readonly divides?: FactorOptions['divides']
  /** Passes over each batch. @default 1 */
  readonly epochs?: number
  /** The rank of the adapter that is trained. @default 32 */
  readonly rank?: number
  /** @default 0 */
  readonly seed?: number
  /** @default 'uniform' */
  readonly weighting?: LeafWeighting
}

interface TinkerLoss {
  readonly name: string
  readonly config?: Readonly<Record<string, number>>
  readonly mean: FactorOptions['mean']
}

const clips = { clip_low_threshold: 0.8, clip_high_threshold: 1.28 }

/**
 * Our names of losses, as Tinker knows them, with the clips of the embedded trainer. Tinker's `ppo` has
 * no dual clip: with A < 0 and a ratio above 3, our `ppo` stops where Tinker's goes on.
 */
const losses: Readonly<Record<string, TinkerLoss>> = {
  ppo: { name: 'ppo', config: clips, mean: 'tokens' },
  grpo: { name: 'ppo', config: clips, mean: 'sequences' },
  bnpo: { name: 'ppo', config: clips, mean: 'tokens' },
  cispo: {
    name: 'cispo',
    config: { clip_low_threshold: 0.8, clip_high_threshold: 1.2 },
    mean: 'tokens',
  },
  'importance-sampling': { name: 'importance_sampling', mean: 'tokens' },
}

/** Tokens of one request: large batches go in several, whose gradients add up. */
const requestTokens = 100_000

const remembered = 'tinker.json'

/**
 * Trains through a Tinker server: forward and backward over every trajectory's full paths, an optimiser
 * step, and weights for the sampler, which the session's policy samples from afterwards. Tinker sums
 * over tokens; means are made by the size of advantages.
 */
export async function openTinkerTrainer(
  session: TinkerSession,
  options: TinkerTrainerOptions = {},
): Promise<Trainer> {
  const { learningRate, loss: named, epochs, seed, weighting } = defaults
  const plain = { learningRate, loss: named, epochs, seed, weighting }
  const settings = { rank: 32, divides: 'nothing' as const, ...plain, ...options }
  const loss = losses[settings.loss]
  if (!loss) {
    const known = Object.keys(losses).join(', ')
    throw new Error(`Tinker has no loss "${settings.loss}". Known: ${known}.`)
  }
  const state: State = { session, model: '', models: 0, requests: 0, samplers: 0 }
  state.model = await createModel(state, settings, { signal: AbortSignal.timeout(600_000) })
  return {
    name: `tinker:${session.url}`,
    async step(groups, call) {
      const { weighting, divides } = settings
      const all = groups.flatMap(group => groupRows(group, { weighting, form: 'paths' }))
      const factors = rowFactors(all, { mean: loss.mean, divides })
      const rows = all.filter(isWorthwhile)
      if (rows.length === 0) return { version: session.version, metrics: countRows(groups, rows) }
      const data = all.flatMap((member, index) =>
        isWorthwhile(member) ? [toDatum(member, factors[index]!)] : [],
      )
      let sums = { loss: 0, difference: 0, tokens: 0 }
      for (let epoch = 0; epoch < settings.epochs; epoch++) {
        sums = await learnFrom(state, data, { loss, call })
        await optimise(state, settings.learningRate, call)
      }
      const version = session.version + 1
      await publish(state, version, call)
      return toStep(version, { ...countRows(groups, rows), ...meanOf(sums) })
    },
    save: (folder, call) => saveTo(state, folder, call),
    async load(folder, call) {
      return await loadFrom(state, folder, { settings, call })
    },
    async [Symbol.asyncDispose]() {},
  }
}

interface State {
  readonly session: TinkerSession
  model: string
  models: number
  requests: number
  samplers: number
}

async function createModel(
  state: State,
  { rank, seed }: { readonly rank: number; readonly seed: number },
  call: Call,
): Promise<string> {
  const { api, id, baseModel } = state.session
  const body = {
    type: 'create_model',
    session_id: id,
    model_seq_id: state.models++,
    base_model: baseModel,
    lora_config: { rank, seed },
  }
  const answer = fieldsOf('create_model', await api.result('create_model', body, call))
  state.requests = 0
  if (typeof answer.model_id === 'string') return answer.model_id
  throw new Error(`create_model gave no model_id: ${JSON.stringify(answer).slice(0, 200)}`)
}

async function learnFrom(
  state: State,
  data: readonly Datum[],
  { loss, call }: { readonly loss: (typeof losses)[string]; readonly call: Call },
) {
  const sums = { loss: 0, difference: 0, tokens: 0 }
  for (const chunk of inChunks(data)) {
    const answer = await state.session.api.result(
      'forward_backward',
      {
        model_id: state.model,
        seq_id: ++state.requests,
        forward_backward_input: {
          data: chunk.map(toBody),
          loss_fn: loss.name,
          ...(loss.config && { loss_fn_config: loss.config }),
        },
      },
      call,
    )
    const { metrics, loss_fn_outputs } = fieldsOf('forward_backward', answer)
    sums.loss += Number((metrics as Record<string, unknown> | undefined)?.['loss:sum'] ?? 0)
    const outputs = Array.isArray(loss_fn_outputs) ? (loss_fn_outputs as unknown[]) : []
    chunk.forEach((datum, index) => {
      const compared = compare(datum, outputs[index])
      sums.difference += compared.difference
      sums.tokens += compared.tokens
    })
  }
  return sums
}

function* inChunks(data: readonly Datum[]): Generator<readonly Datum[]> {
  let chunk: Datum[] = []
  let tokens = 0
  for (const datum of data) {
    const size = datum.model_input.chunks[0]!.tokens.length
    if (chunk.length > 0 && tokens + size > requestTokens) {
      yield chunk
      chunk = []
      tokens = 0
    }
    chunk.push(datum)
    tokens += size
  }
  if (chunk.length > 0) yield chunk
}

/** Typed arrays as JSON has them. */
function toBody({ model_input, loss_fn_inputs }: Datum): object {
  return {
    model_input: {
      chunks: model_input.chunks.map(({ type, tokens }) => ({ type, tokens: Array.from(tokens) })),
    },
    loss_fn_inputs: Object.fromEntries(
      Object.entries(loss_fn_inputs).map(([name, { data, dtype, shape }]) => [
        name,
        { data: Array.from(data), dtype, shape },
      ]),
    ),
  }
}

/** How far the log-probabilities that were learned with are from those that were sampled with. */
function compare(datum: Datum, output: unknown): { difference: number; tokens: number } {
  const found = (output as { logprobs?: { data?: unknown } } | undefined)?.logprobs?.data
  const now = Array.isArray(found) ? (found as number[]) : []
  const then = datum.loss_fn_inputs.logprobs!.data
  const advantages = datum.loss_fn_inputs.advantages!.data
  let difference = 0
  let tokens = 0
  for (let token = 0; token < Math.min(now.length, then.length); token++) {
    if (advantages[token] === 0) continue
    difference += then[token]! - now[token]!
    tokens++
  }
  return { difference, tokens }
}

async function optimise(state: State, learningRate: number, call: Call): Promise<void> {
  const body = {
    type: 'optim_step',
    model_id: state.model,
    seq_id: ++state.requests,
    adam_params: { learning_rate: learningRate, beta1: 0.9, beta2: 0.95, eps: 1e-8 },
  }
  await state.session.api.result('optim_step', body, call)
}

/** Makes what was learned available to samples. */
async function publish(state: State, version: number, call: Call): Promise<void> {
  const body = {
    type: 'save_weights_for_sampler',
    model_id: state.model,
    sampling_session_seq_id: state.samplers++,
    seq_id: ++state.requests,
  }
  const answer = await state.session.api.result('save_weights_for_sampler', body, call)
  const { path, sampling_session_id } = fieldsOf('save_weights_for_sampler', answer)
  await state.session.sampleFrom(
    {
      version,
      ...(typeof sampling_session_id === 'string' && { samplingSession: sampling_session_id }),
      ...(typeof path === 'string' && { path }),
    },
    call,
  )
}

async function saveTo(state: State, folder: string, call: Call): Promise<void> {
  const { version, api, baseModel, url } = state.session
  const body = {
    type: 'save_weights',
    model_id: state.model,
    path: `espalier-${version}`,
    seq_id: ++state.requests,
  }
  const { path } = fieldsOf('save_weights', await api.result('save_weights', body, call))
  await mkdir(folder, { recursive: true })
  const record = { path, version, baseModel, url }
  await writeFile(join(folder, remembered), `${JSON.stringify(record, null, 2)}\n`)
}

/** Servers load weights into fresh models only. */
async function loadFrom(
  state: State,
  folder: string,
  { settings, call }: { settings: { rank: number; seed: number }; call: Call },
): Promise<{ readonly version: number }> {
  const record = JSON.parse(await readFile(join(folder, remembered), 'utf8')) as {
    path: string
    version: number
  }
  state.model = await createModel(state, settings, call)
  const body = {
    type: 'load_weights',
    model_id: state.model,
    path: record.path,
    optimizer: true,
    seq_id: ++state.requests,
  }
  await state.session.api.result('load_weights', body, call)
  await publish(state, record.version, call)
  return { version: record.version }
}

/** A row that is worth as much as its siblings teaches nothing. */
function isWorthwhile({ row }: MemberRow): boolean {
  return row.advantages.some((value, token) => row.mask[token] === 1 && value !== 0)
}

function countRows(groups: readonly Group[], rows: readonly MemberRow[]): Record<string, number> {
  const count = (mask: Uint8Array): number => mask.reduce((sum, bit) => sum + bit, 0)
  return {
    groups: groups.length,
    trainedRows: rows.length,
    trainedTokens: rows.reduce((sum, { row }) => sum + count(row.mask), 0),
  }
}

function meanOf({
  loss,
  difference,
  tokens,
}: {
  loss: number
  difference: number
  tokens: number
}) {
  return { loss, ...(tokens > 0 && { meanDifference: difference / tokens }) }
}

function toStep(version: number, metrics: Record<string, number>): TrainerStep {
  return { version, metrics }
}
