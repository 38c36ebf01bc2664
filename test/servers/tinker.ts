import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Door } from '../../src/doors/door/door.ts'
import { type EmbeddedModel, type ModelShape, openModel } from '../../src/learn/model/model.ts'
import type { Foreign } from '../foreign.ts'
import { openSequences } from './tinker-sequences.ts'
import { readPass, writePassOutput, writeSampleOutput } from './tinker-wire.ts'

/** A server that speaks Tinker's API over embedded models. */
export interface TinkerServer extends AsyncDisposable {
  readonly url: string
  /** The model that learns. */
  readonly trained: EmbeddedModel
  /** Paths that were asked for, in order. */
  readonly asked: string[]
  /** How many spans of tokens clients said the origin of; each was checked. */
  readonly claims: () => number
}

interface Datum {
  readonly model_input: { readonly chunks: readonly { readonly tokens: readonly number[] }[] }
  readonly loss_fn_inputs: Readonly<Record<string, { readonly data: readonly number[] }>>
}

/**
 * Opens the server: one model learns and another is sampled from, which gets the weights when they are
 * saved for it, as in the API. Results are futures; the first request for each is answered with
 * `try_again`. Passes come as JSON or protobuf, and results are sent in the accepted form, as with the
 * official SDK.
 */
export async function openTinkerServer(
  shape: ModelShape,
  { seed = 3, port = 0 }: { readonly seed?: number; readonly port?: number } = {},
): Promise<TinkerServer> {
  const trained = await openModel({ shape, seed }, { threads: 1, kernel: 'plain' })
  const sampler = await openModel({ shape, seed }, { threads: 1, kernel: 'plain' })
  const folder = mkdtempSync(join(tmpdir(), 'espalier-tinker-'))
  const asked: string[] = []
  const futures = new Map<string, { tries: number; result: Promise<unknown> }>()
  const samplers = new Set<string>()
  const sequences = openSequences()
  let counter = 0
  let requestsOfModel = 0

  const later = (work: () => Promise<unknown>): object => {
    const request_id = String(++counter)
    const result = work().catch((error: Error) => ({ error: error.message, category: 'user' }))
    futures.set(request_id, { tries: 0, result })
    return { request_id, future_id: request_id, status: 'pending' }
  }
  const posts: Readonly<Record<string, (body: Foreign) => unknown>> = {
    'client/config': () => ({ proto_compress_fwdbwd: false, parallel_fwdbwd_chunks: true }),
    telemetry: () => ({ status: 'accepted' }),
    get_info: () => ({
      type: 'get_info',
      model_id: 'model_1',
      model_data: { arch: 'espalier', model_name: 'espalier/small', tokenizer_id: 'none' },
    }),
    unload_model: () => later(async () => ({ type: 'unload_model', model_id: 'model_1' })),
    'sessions/session_1/finish': () => ({}),
    create_session: () => ({ type: 'create_session', session_id: 'session_1' }),
    session_heartbeat: () => ({ type: 'session_heartbeat' }),
    create_sampling_session: ({ base_model, model_path }) => {
      if ((base_model === undefined) === (model_path === undefined)) {
        throw new Error('Exactly one of base_model or model_path must be provided')
      }
      const id = `sampling_${++counter}`
      samplers.add(id)
      return { type: 'create_sampling_session', sampling_session_id: id }
    },
    create_model: ({ lora_config }) => {
      requestsOfModel = 0
      return later(async () => ({ model_id: 'model_1', lora_config }))
    },
    asample: body => {
      const names = Array.from({ length: body.num_samples ?? 1 }, () => `sequence_${++counter}`)
      const drawn = sample(sampler, samplers, body)
      const kept = drawn.then(answer => {
        for (const [at, { tokens }] of answer.sequences.entries()) {
          sequences.keep(names[at]!, body, tokens)
        }
        return answer
      })
      return { ...later(() => kept), sample_sequence_ids: names }
    },
    forward_backward: body => {
      requestsOfModel++
      const input = body.forward_backward_input
      sequences.check(input.data)
      return later(() => forwardBackward(trained, input, body.forward_only === true))
    },
    optim_step: ({ adam_params }) =>
      later(async () => {
        const { learning_rate, beta1, beta2, eps, grad_clip_norm } = adam_params
        const { gradientNorm } = await trained.applyGradient({
          learningRate: learning_rate,
          clip: grad_clip_norm || Number.MAX_VALUE,
          betas: [beta1, beta2],
          epsilon: eps,
        })
        return { metrics: { 'grad_norm:mean': gradientNorm } }
      }),
    save_weights_for_sampler: () =>
      later(async () => {
        await trained.save(join(folder, 'sampler'))
        await sampler.load(join(folder, 'sampler'))
        const id = `sampling_${++counter}`
        samplers.add(id)
        return { type: 'save_weights_for_sampler', path: null, sampling_session_id: id }
      }),
    save_weights: ({ path }) =>
      later(async () => {
        await trained.save(join(folder, path))
        await trained.saveOptimizer(join(folder, path))
        return { type: 'save_weights', path: `tinker://model_1/weights/${path}` }
      }),
    load_weights: ({ path }) => {
      if (requestsOfModel > 0) throw new Error('LoadWeights is only a first request')
      const name = String(path).split('/').at(-1)!
      return later(async () => {
        await trained.load(join(folder, name))
        await trained.loadOptimizer(join(folder, name))
        return { type: 'load_weights', path }
      })
    },
    retrieve_future: async ({ request_id }) => {
      const future = futures.get(request_id)
      if (!future) throw new Error('Future not found')
      if (future.tries++ === 0) return { type: 'try_again', request_id, queue_state: 'active' }
      return await future.result
    },
  }
  const door = new Door({ host: '127.0.0.1' })
  door.get('/api/v1/get_server_capabilities', () => ({
    supported_models: [{ model_name: 'espalier/small' }],
  }))
  for (const [path, answer] of Object.entries(posts)) {
    door.post(`/api/v1/${path}`, async (request, reply) => {
      asked.push(path)
      const { 'content-type': type = '', accept } = request.headers
      try {
        const body = type.includes('protobuf')
          ? readPass(await request.bytes(type))
          : await request.json()
        const result = await answer(body)
        const bytes = String(accept).includes('protobuf') ? asProtobuf(result) : undefined
        if (!bytes) return result
        return reply.send(200, 'application/x-protobuf', bytes)
      } catch (error) {
        reply.status = 400
        return { detail: (error as Error).message }
      }
    })
  }
  const url = await door.listen(port)
  return {
    url,
    trained,
    asked,
    claims: sequences.claims,
    async [Symbol.asyncDispose]() {
      await door.close()
      await trained[Symbol.asyncDispose]()
      await sampler[Symbol.asyncDispose]()
      rmSync(folder, { recursive: true, force: true })
    },
  }
}

/** Results that go as protobuf where that is accepted. */
function asProtobuf(result: Foreign): Uint8Array | undefined {
  if (result?.sequences) return writeSampleOutput(result.sequences, result.prompt_logprobs)
  if (!result?.loss_fn_outputs) return undefined
  const outputs = result.loss_fn_outputs.map((each: Foreign) => each.logprobs.data)
  return writePassOutput(outputs, result.metrics['loss:sum'])
}

async function sample(model: EmbeddedModel, samplers: ReadonlySet<string>, body: Foreign) {
  const { prompt, sampling_params: parameters, sampling_session_id } = body
  if (!samplers.has(sampling_session_id)) throw new Error('Sampling session not found')
  const ids = Int32Array.from(prompt.chunks.flatMap((chunk: Foreign) => chunk.tokens))
  const call = { signal: new AbortController().signal }
  const request = {
    prompt: ids,
    maxTokens: parameters.max_tokens,
    temperature: parameters.temperature ?? 1,
    topP: parameters.top_p ?? 1,
    topK: Math.max(0, parameters.top_k ?? 0),
    stop: parameters.stop ?? [],
  }
  const sequences = []
  for (let index = 0; index < (body.num_samples ?? 1); index++) {
    const drawn = await model.sample({ ...request, seed: (parameters.seed ?? 0) + index }, call)
    sequences.push({
      tokens: [...drawn.ids],
      logprobs: [...drawn.logprobs],
      stop_reason: drawn.finish,
    })
  }
  const scored = body.prompt_logprobs
    ? (await model.score(ids, 1, { temperature: 1 }, call)).logprobs
    : undefined
  return { type: 'sample', sequences, prompt_logprobs: scored ? [null, ...scored] : null }
}

/** Tinker's ppo, importance_sampling and cross_entropy: a sum over targets (skyrl/tinker/loss_fns.py at a956457). */
async function forwardBackward(model: EmbeddedModel, input: Foreign, isForwardOnly = false) {
  const data: readonly Datum[] = input.data
  const { clip_low_threshold: low = 0.8, clip_high_threshold: high = 1.2 } =
    input.loss_fn_config ?? {}
  const isClipped = input.loss_fn === 'ppo'
  const isWeighted = input.loss_fn === 'cross_entropy'
  if (!isClipped && !isWeighted && input.loss_fn !== 'importance_sampling') {
    throw new Error(`loss_fn ${input.loss_fn} is not supported here`)
  }
  const rows = data.map(toRow)
  let sum = 0
  const { logprobs, offsets } = await model.gradient(rows, numbers => {
    const logprobGradient = new Float64Array(numbers.logprobs.length)
    data.forEach(({ loss_fn_inputs }, row) => {
      if (isWeighted) {
        loss_fn_inputs.weights!.data.forEach((weight, target) => {
          const place = numbers.offsets[row]! + target + 1
          sum -= weight * numbers.logprobs[place]!
          logprobGradient[place] = -weight
        })
        return
      }
      const then = loss_fn_inputs.logprobs!.data
      loss_fn_inputs.advantages!.data.forEach((advantage, target) => {
        if (advantage === 0) return
        const place = numbers.offsets[row]! + target + 1
        const ratio = Math.exp(numbers.logprobs[place]! - then[target]!)
        const isCut = isClipped && (advantage > 0 ? ratio > high : ratio < low)
        sum -= isCut ? Math.min(Math.max(ratio, low), high) * advantage : ratio * advantage
        logprobGradient[place] = isCut ? 0 : -ratio * advantage
      })
    })
    return {
      ...numbers,
      logprobGradient: isForwardOnly ? logprobGradient.fill(0) : logprobGradient,
    }
  })
  return {
    loss_fn_output_type: 'ArrayRecord',
    loss_fn_outputs: rows.map(({ ids }, row) => ({
      logprobs: {
        data: [...logprobs.subarray(offsets[row]! + 1, offsets[row]! + ids.length)],
        dtype: 'float32',
      },
    })),
    metrics: { 'loss:sum': sum },
  }
}

function toRow({ model_input, loss_fn_inputs }: Datum) {
  const tokens = model_input.chunks.flatMap(chunk => [...chunk.tokens])
  const targets = loss_fn_inputs.target_tokens!.data
  const isWeighted = !loss_fn_inputs.advantages
  const worth = (loss_fn_inputs.advantages ?? loss_fn_inputs.weights)!.data
  if (tokens.length !== targets.length || targets.length !== worth.length) {
    throw new Error('model_input and loss_fn_inputs have different lengths')
  }
  return {
    ids: Int32Array.from([tokens[0]!, ...targets]),
    // A pass that only looks has weights of 0 and wants every number.
    mask: Uint8Array.from([0, ...worth], (value, at) =>
      at > 0 && (isWeighted || value !== 0) ? 1 : 0,
    ),
    temperature: 1,
  }
}
