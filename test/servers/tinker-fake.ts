import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import type { Foreign } from '../foreign.ts'
import { readPass } from './tinker-wire.ts'

/** One request that arrived. */
export interface Arrived {
  readonly path: string
  readonly type: string
  readonly headers: Readonly<Record<string, unknown>>
  readonly body: Foreign
}

/** What is answered instead of the usual: a code and a body. */
export type Instead = { readonly code: number; readonly body?: unknown } | undefined

/** How a fake Tinker server without a model behaves. */
export interface FakeTinkerOptions {
  /** Looks at every request first. */
  readonly instead?: (arrived: Arrived, before: readonly Arrived[]) => Instead
  /** What the server publishes of its paths. */
  readonly openapi?: unknown
  readonly config?: object
  readonly metrics?: Readonly<Record<string, number>>
}

/** Opens a server that gives a valid answer of Tinker's API to every request; tests make it misbehave. */
export async function openFakeTinker(options: FakeTinkerOptions = {}) {
  const arrived: Arrived[] = []
  const results = new Map<string, unknown>()
  const server = createServer((request, response) => {
    const pieces: Buffer[] = []
    request.on('data', piece => pieces.push(piece))
    request.on('end', () => {
      const type = String(request.headers['content-type'] ?? '')
      const bytes = Buffer.concat(pieces)
      const path = request.url!.replace('/api/v1/', '')
      const body = type.includes('protobuf') ? readPass(bytes) : parse(bytes)
      const one = { path, type, headers: request.headers, body }
      const other = options.instead?.(one, arrived)
      arrived.push(one)
      const answer = other?.body ?? (other ? { detail: 'refused' } : usual(one, options, results))
      const code = other?.code ?? (answer === undefined ? 404 : 200)
      response.writeHead(code, { 'content-type': 'application/json' })
      response.end(JSON.stringify(answer ?? { detail: 'Not Found' }))
    })
  })
  await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve))
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    arrived,
    /** The requests of one path. */
    to: (path: string) => arrived.filter(each => each.path === path),
    async [Symbol.asyncDispose]() {
      server.closeAllConnections()
      await new Promise(resolve => server.close(resolve))
    },
  }
}

const parse = (bytes: Buffer): unknown => (bytes.length === 0 ? null : JSON.parse(bytes.toString()))

function usual(one: Arrived, options: FakeTinkerOptions, results: Map<string, unknown>): unknown {
  const { path, body } = one
  if (path === '/openapi.json') return options.openapi
  if (path === 'get_server_capabilities') return { supported_models: [{ model_name: 'm' }] }
  if (path === 'client/config') return options.config ?? {}
  if (path === 'create_session') return { session_id: 'S' }
  if (path === 'create_sampling_session') {
    return { sampling_session_id: `S-sample-${body.sampling_session_seq_id}` }
  }
  if (path === 'retrieve_future') return results.get(body.request_id)
  const result = resultOf(one, options)
  if (result === undefined) return undefined
  const request_id = String(results.size + 1)
  results.set(request_id, result)
  return { request_id }
}

function resultOf({ path, body }: Arrived, { metrics }: FakeTinkerOptions): unknown {
  if (path === 'create_model') return { model_id: `M${body.model_seq_id}` }
  if (path === 'optim_step') return { metrics: {} }
  if (path === 'unload_model') return {}
  if (path === 'save_weights') return { path: `tinker://${body.model_id}/weights/${body.path}` }
  if (path === 'load_weights') return { path: body.path }
  if (path === 'save_weights_for_sampler') {
    return { sampling_session_id: `S-sample-${body.sampling_session_seq_id}` }
  }
  if (path === 'asample') return sampleOf(body)
  if (path !== 'forward_backward' && path !== 'forward') return undefined
  const { data } = body.forward_backward_input ?? body.forward_input
  return {
    loss_fn_outputs: data.map(({ loss_fn_inputs }: Arrived['body']) => ({
      logprobs: loss_fn_inputs.logprobs,
      elementwise_loss: { data: [0.5] },
    })),
    metrics: metrics ?? { 'loss:sum': 2 },
  }
}

function sampleOf({ num_samples: count, prompt, prompt_logprobs: scores }: Arrived['body']) {
  const [{ tokens }] = prompt.chunks
  return {
    sequences: Array.from({ length: count }, (_, index) => ({
      tokens: [5 + index, 6, 7],
      logprobs: [-0.5, -0.25, -0.125],
      stop_reason: 'length',
    })),
    prompt_logprobs: scores ? tokens.map((_: number, at: number) => (at ? -at : null)) : null,
  }
}
