import type { Call } from '../../../base/core/call.ts'
import type {
  Policy,
  PolicyDescription,
  SampleRequest,
  Sampling,
  TokenSample,
} from '../../../base/core/policy.ts'
import { type Clock, systemClock } from '../../../base/core/process/clock.ts'
import { llamaForm } from '../form/engines.ts'
import { toTokenSample } from '../sample.ts'
import { isCut } from '../sampling.ts'
import { follow } from '../transport/follow.ts'
import {
  type Body,
  lastsAs,
  makePromptWriter,
  type PromptWriter,
  pathOf,
} from '../transport/prompt-writer.ts'
import { asCount, asObject, checkPromptCount, parseJson } from '../transport/reading.ts'
import { ask, getObject, readPressure } from './ask.ts'
import {
  type LlamaDraw,
  type LossyDraw,
  makeLlamaStream,
  readLlamaAnswer,
} from './llama-cpp-answer.ts'
import { openServer, type Server, type ServerOptions, type ServerRequest } from './server.ts'
import { withSession } from './session-key.ts'

/** How to use a llama.cpp server. */
export interface LlamaCppOptions extends ServerOptions {
  /**
   * Streams every sample, so that what was sampled is kept when one is aborted. The server does
   * not stream tokens that end inside a character; such samples are asked for once more, whole.
   * @default false
   */
  readonly stream?: boolean
  /** The version of the weights, for callers that know it: the server does not report it. @default 0 */
  readonly version?: () => number
  readonly clock?: Clock
}

interface LlamaCpp {
  readonly server: Server
  readonly where: string
  readonly options: LlamaCppOptions
  readonly writer: PromptWriter
  readonly clock: Clock
  readonly version: () => number
}

/** Opens a policy behind a llama.cpp server's `/completion`. */
export function openLlamaCpp(url: string, options: LlamaCppOptions = {}): Policy {
  const server = openServer(url, options)
  const { version = () => 0, clock = systemClock } = options
  const where = `POST ${server.url}/completion`
  const llama: LlamaCpp = { server, where, options, writer: makePromptWriter(), clock, version }
  return {
    name: `llama-cpp:${server.url}`,
    capabilities: {
      ids: true,
      logprobs: true,
      basis: 'tempered',
      topLogprobs: 100,
      entropies: false,
      score: false,
      several: false,
      abort: options.stream ?? false,
      seed: true,
      version: options.version !== undefined,
      stream: true,
      forms: 'json',
    },
    async sample(request, call) {
      call.signal.throwIfAborted()
      // Without a stream, the server leaves out probabilities of the tokens of a stop string.
      const streams = options.stream || request.watch || request.stopStrings.length > 0
      const start = { time: clock.now(), version: version() }
      const draw = streams
        ? await drawStreamed(llama, request, call)
        : await drawWhole(llama, request, { maxTokens: request.maxTokens, call })
      return finish({ llama, request, ...start }, draw)
    },
    describe: call => describe(server, call),
    pressure: call => readPressure(server, ['llamacpp:kv_cache_usage_ratio'], call),
    [Symbol.asyncDispose]: () => server[Symbol.asyncDispose](),
  }
}

/** Draws without a stream and without the server's stop strings, which are looked for here. */
async function drawWhole(
  llama: LlamaCpp,
  request: SampleRequest,
  { maxTokens, call }: { readonly maxTokens: number; readonly call: Call },
): Promise<LlamaDraw> {
  const whole = { ...request, maxTokens, stopStrings: [] }
  const body = bodyOf(llama, whole, false)
  const answer = await ask(
    llama.server,
    told(llama, request, { path: '/completion', body: body.bytes }),
    call,
  )
  body.keep()
  return readLlamaAnswer(parseJson(answer, llama.where), askedOf(llama, request))
}

async function drawStreamed(
  llama: LlamaCpp,
  request: SampleRequest,
  call: Call,
): Promise<LlamaDraw> {
  const { server, where } = llama
  const body = bodyOf(llama, request, true)
  const stream = makeLlamaStream(askedOf(llama, request))
  const { stopped, body: whole } = await follow(
    {
      where,
      start: onEvents =>
        server.start(told(llama, request, { path: '/completion', body: body.bytes, onEvents })),
      take: stream.take,
      ids: () => stream.ids,
      watch: request.watch,
    },
    call,
  )
  body.keep()
  if (whole.length > 0) return readLlamaAnswer(parseJson(whole, where), askedOf(llama, request))
  const drawn = stream.finish(stopped)
  return 'lost' in drawn ? drawAgain(llama, request, { drawn, call }) : drawn
}

/**
 * Draws again, whole and with the same seed and number of tokens, a sample whose stream lost tokens.
 * An aborted one is kept up to the first loss.
 */
async function drawAgain(
  llama: LlamaCpp,
  request: SampleRequest,
  { drawn, call }: { readonly drawn: LossyDraw; readonly call: Call },
): Promise<LlamaDraw> {
  const { finish, predicted, before } = drawn
  if (finish.kind === 'abort') return before
  const again = await drawWhole(llama, request, { maxTokens: predicted, call })
  if (finish.kind !== 'stop') return { ...again, finish }
  // The second draw may differ if the server's cache is of lower precision.
  const isEnded = again.finish.kind === 'stop' || predicted === request.maxTokens
  return isEnded ? again : drawWhole(llama, request, { maxTokens: request.maxTokens, call })
}

function told<Sent extends ServerRequest>(
  { options }: LlamaCpp,
  { session }: SampleRequest,
  sent: Sent,
): Sent {
  return withSession(sent, session, options)
}

function askedOf({ where }: LlamaCpp, { topLogprobs = 0, stopIds, stopStrings }: SampleRequest) {
  return { where, width: topLogprobs, stopIds, stopStrings }
}

function bodyOf({ writer }: LlamaCpp, request: SampleRequest, stream: boolean): Body {
  const tail = `],${JSON.stringify(rest(request, stream)).slice(1)}`
  return writer.write(
    pathOf(request),
    request.prompt.ids,
    { head: '{"prompt":[', tail },
    lastsAs(request.prompt),
  )
}

/** States every setting that the server would otherwise choose itself. Greedy samples have no distribution after sampling. */
function rest(request: SampleRequest, stream: boolean): object {
  const { sampling, topLogprobs = 0 } = request
  return {
    ...samplersOf(sampling),
    n_predict: request.maxTokens,
    stop: request.stopStrings,
    seed: request.seed,
    ignore_eos: false,
    cache_prompt: true,
    return_tokens: true,
    n_probs: Math.max(1, topLogprobs),
    post_sampling_probs: sampling.temperature > 0,
    stream,
    ...llamaForm(request.form),
  }
}

/** Temperature first, as other servers do; only these samplers run. */
function samplersOf(sampling: Sampling): object {
  return {
    samplers: ['temperature', 'top_k', 'top_p', 'min_p'],
    temperature: sampling.temperature,
    top_k: sampling.topK,
    top_p: sampling.topP,
    min_p: sampling.minP,
    dynatemp_range: 0,
    typical_p: 1,
    repeat_penalty: 1,
    presence_penalty: 0,
    frequency_penalty: 0,
    dry_multiplier: 0,
    xtc_probability: 0,
    mirostat: 0,
  }
}

interface Drawn {
  readonly llama: LlamaCpp
  readonly request: SampleRequest
  readonly time: number
  readonly version: number
}

function finish({ llama, request, time, version }: Drawn, draw: LlamaDraw): TokenSample {
  const sent = request.prompt.ids.length
  checkPromptCount(draw.promptTokens, sent, llama.where)
  const isRaw = draw.isRaw || request.sampling.temperature === 0
  return toTokenSample({
    ids: draw.ids,
    logprobs: draw.logprobs,
    top: draw.top,
    basis: isRaw ? 'raw' : isCut(request.sampling) || request.form ? 'renormalised' : 'tempered',
    version: { from: version, to: Math.max(version, llama.version()) },
    finish: draw.finish,
    usage: {
      prompt: sent,
      sampled: draw.ids.length,
      seconds: (llama.clock.now() - time) / 1000,
      ...(draw.cachedTokens === undefined ? {} : { cached: draw.cachedTokens }),
    },
  })
}

async function describe(server: Server, call: Call): Promise<PolicyDescription> {
  const where = `GET ${server.url}/props`
  const { model_path: model, default_generation_settings: settings } = await getObject(
    server,
    ['/props'],
    call,
  )
  const context = settings
    ? asCount(asObject(settings, where, 'default_generation_settings').n_ctx, where, 'n_ctx')
    : undefined
  return {
    ...(typeof model === 'string' ? { model } : {}),
    ...(context === undefined ? {} : { context }),
  }
}
