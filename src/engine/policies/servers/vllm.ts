import type { Call } from '../../../base/core/call.ts'
import type { PromptImages } from '../../../base/core/image.ts'
import type {
  Policy,
  SampleRequest,
  ScoreOptions,
  Scores,
  TokenSample,
} from '../../../base/core/policy.ts'
import { type Clock, systemClock } from '../../../base/core/process/clock.ts'
import type { LogprobBasis, VersionRange } from '../../../base/core/segment.ts'
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
import {
  asArray,
  asObject,
  checkScored,
  type Fields,
  parseJson,
  wrong,
} from '../transport/reading.ts'
import { isUnknownPath, ServerError } from '../transport/server-error.ts'
import { makeVersions, type Versions, versionRange } from '../versions.ts'
import { answerOf, ask } from './ask.ts'
import type { Generated } from './generated.ts'
import { type ExpertShape, readExperts } from './routed-experts.ts'
import { openServer, type Server, type ServerOptions, type ServerRequest } from './server.ts'
import { withSession } from './session-key.ts'
import {
  cachedTokens,
  checkCount,
  makeChoice,
  readChoices,
  readPromptLogprobs,
} from './vllm-answer.ts'
import { countVllmCache, describeVllm, pressureOfVllm } from './vllm-describe.ts'
import { type AskWithImages, makeImageRequests } from './vllm-images.ts'
import { makeVllmFrames, type VllmEndpoint, vllmPaths, vllmScoreFrame } from './vllm-request.ts'
import { makeWeightSync, type UpdateMode, vllmSteps } from './weight-sync.ts'

/** How to use a vLLM server. */
export interface VllmOptions extends ServerOptions {
  /** The name under which the server serves the model, if it serves several. */
  readonly servedModel?: string
  /**
   * What the server's `--logprobs-mode` gives: `raw` before temperature, as by default, or
   * `processed` after it. @default 'raw', or what `takeLogprobs` says
   */
  readonly logprobs?: 'raw' | 'processed'
  /** @default `generate` if the server knows it, else `completions` */
  readonly endpoint?: VllmEndpoint
  /** Keeps the experts that served each token: layers and experts per token of the model. @default none */
  readonly experts?: ExpertShape
  /** Streams every sample, so that what was sampled is kept when one is aborted. @default false */
  readonly stream?: boolean
  /** The version of the weights, for callers that know it: the server does not report it. @default 0 */
  readonly version?: () => number
  /** Whether requests under way are finished first (`drain`) or aborted when weights change. @default 'drain' */
  readonly update?: UpdateMode
  readonly clock?: Clock
}

interface Vllm {
  readonly server: Server
  readonly options: VllmOptions
  readonly writer: PromptWriter
  readonly frameOf: ReturnType<typeof makeVllmFrames>
  readonly askWithImages: AskWithImages
  readonly clock: Clock
  /** Version numbers for the weight names in an answer's spans. */
  readonly versions: Versions
  version: () => number
  /** The name under which the model is served, or the adapter that was loaded last. */
  model: string | undefined
  endpoint: VllmEndpoint
  /** What its numbers are at other temperatures than 1. */
  logprobs: 'raw' | 'processed'
}

/** One sample under way. */
interface SampleState {
  readonly vllm: Vllm
  readonly request: SampleRequest
  readonly time: number
  readonly version: number
}

/** Opens a policy behind a vLLM server that takes token prompts and gives token ids back. */
export function openVllm(url: string, options: VllmOptions = {}): Policy {
  const server = openServer(url.replace(/\/v1\/?$/, ''), options)
  const { endpoint = 'generate', version = () => 0, clock = systemClock } = options
  const vllm: Vllm = {
    server,
    options,
    writer: makePromptWriter(),
    frameOf: makeVllmFrames(),
    askWithImages: makeImageRequests(server),
    clock,
    versions: makeVersions(),
    version,
    endpoint,
    logprobs: options.logprobs ?? 'raw',
    model: options.servedModel,
  }
  const weights = makeWeightSync(vllmSteps(server), {
    mode: options.update ?? 'drain',
    onUpdated({ version: loaded, adapter }) {
      vllm.version = () => Math.max(loaded, version())
      vllm.model = adapter ?? options.servedModel
    },
  })
  const streams = options.stream ?? false
  return {
    name: `vllm:${server.url}`,
    capabilities: {
      ids: true,
      logprobs: true,
      basis: options.logprobs === 'processed' ? 'tempered' : 'raw',
      // The server's own limit is 20 unless it was raised, and one goes to the sampled token.
      topLogprobs: 19,
      entropies: false,
      images: true,
      ...(options.experts && { experts: true }),
      score: true,
      several: true,
      abort: streams,
      seed: true,
      version: options.version !== undefined,
      stream: true,
      forms: 'json',
    },
    sample: (request, call) => sample(begin(vllm, request), call),
    sampleSeveral: (request, seeds, call) => sampleSeveral(begin(vllm, request), seeds, call),
    score: (ids, from, options, call) => score(vllm, { ids, from, ...options }, call),
    describe: call => describeVllm(server, options.servedModel, call),
    prefixCache: call => countVllmCache(server, call),
    pressure: call => pressureOfVllm(server, call),
    weights,
    takeLogprobs(found) {
      vllm.logprobs = options.logprobs ?? found
    },
    [Symbol.asyncDispose]: () => server[Symbol.asyncDispose](),
  }
}

/** A request that tells whose it is. */
function told<Sent extends ServerRequest>({ vllm, request }: SampleState, sent: Sent): Sent {
  return withSession(sent, request.session, vllm.options)
}

function begin(vllm: Vllm, request: SampleRequest): SampleState {
  return { vllm, request, time: vllm.clock.now(), version: vllm.version() }
}

/** Runs `work` with an endpoint; a server without `generate` is asked the other way. */
async function withEndpoint<T>(
  vllm: Vllm,
  work: (endpoint: VllmEndpoint) => Promise<T>,
): Promise<T> {
  const { endpoint } = vllm
  try {
    return await work(endpoint)
  } catch (cause) {
    if (vllm.options.endpoint || endpoint === 'completions' || !isClosed(cause)) throw cause
    vllm.endpoint = 'completions'
    return work('completions')
  }
}

/** Whether `generate` is not there, or not open: plain `vllm serve` answers it with 403. */
function isClosed(cause: unknown): boolean {
  return isUnknownPath(cause) || (cause instanceof ServerError && cause.status === 403)
}

function sample(attempt: SampleState, call: Call): Promise<TokenSample> {
  const { vllm, request } = attempt
  if (request.prompt.images) return sampleShown(attempt, request.prompt.images, call)
  const streams = vllm.options.stream || request.watch !== undefined
  return withEndpoint(vllm, endpoint => {
    return streams ? sampleStreamed(attempt, endpoint, call) : sampleWhole(attempt, endpoint, call)
  })
}

function sampleSeveral(
  attempt: SampleState,
  seeds: readonly number[],
  call: Call,
): Promise<readonly TokenSample[]> {
  const { vllm, request } = attempt
  const seed = seeds[0] ?? request.seed
  const follow = seeds.every((other, index) => other === seed + index)
  if (!follow || vllm.options.stream || request.watch || request.prompt.images) {
    return Promise.all(seeds.map(each => sample(begin(vllm, { ...request, seed: each }), call)))
  }
  const counted = begin(vllm, { ...request, seed })
  return withEndpoint(vllm, endpoint =>
    sampleCounted(counted, { endpoint, count: seeds.length }, call),
  )
}

async function sampleWhole(
  attempt: SampleState,
  endpoint: VllmEndpoint,
  call: Call,
): Promise<TokenSample> {
  call.signal.throwIfAborted()
  const { path, asked } = placeOf(attempt, endpoint)
  const body = bodyOf(attempt, { endpoint, stream: false, count: 1 })
  const reading = { kind: 'vllm-choice', width: asked.width } as const
  const exchange = attempt.vllm.server.startRead(told(attempt, { path, body: body.bytes }), reading)
  const answer = await answerOf(exchange, call)
  body.keep()
  return finish(attempt, answer, answer.cachedTokens)
}

/** Behind images a sample comes whole: the server says with it how it read the prompt. */
async function sampleShown(
  attempt: SampleState,
  images: PromptImages,
  call: Call,
): Promise<TokenSample> {
  const { vllm, request } = attempt
  const { where, asked } = placeOf(attempt, 'generate')
  const { model } = vllm
  const frame = vllm.frameOf(request, { model, endpoint: 'generate', stream: false, count: 1 })
  const { ids } = request.prompt
  const answer = await vllm.askWithImages(
    { ids, images, frame, told: sent => told(attempt, sent) },
    call,
  )
  const choices = readChoices(answer, asked)
  checkCount(choices, 1, where)
  return finish(attempt, choices[0]!, cachedTokens(answer, where))
}

async function sampleCounted(
  attempt: SampleState,
  { endpoint, count }: { readonly endpoint: VllmEndpoint; readonly count: number },
  call: Call,
): Promise<readonly TokenSample[]> {
  const { vllm } = attempt
  const { path, where, asked } = placeOf(attempt, endpoint)
  const body = bodyOf(attempt, { endpoint, stream: false, count })
  const answer = parseJson(
    await ask(vllm.server, told(attempt, { path, body: body.bytes }), call),
    where,
  )
  body.keep()
  const choices = readChoices(answer, asked)
  checkCount(choices, count, where)
  return choices.map(choice => finish(attempt, choice, cachedTokens(answer, where)))
}

async function sampleStreamed(
  attempt: SampleState,
  endpoint: VllmEndpoint,
  call: Call,
): Promise<TokenSample> {
  call.signal.throwIfAborted()
  const { vllm, request } = attempt
  const { path, where, asked } = placeOf(attempt, endpoint)
  const body = bodyOf(attempt, { endpoint, stream: true, count: 1 })
  const choice = makeChoice(asked)
  const { stopped, body: whole } = await follow(
    {
      where,
      start: onEvents => vllm.server.start(told(attempt, { path, body: body.bytes, onEvents })),
      take: choice.takeEvent,
      ids: () => choice.ids,
      watch: request.watch,
    },
    call,
  )
  body.keep()
  if (whole.length === 0) return finish(attempt, choice.finish(stopped))
  const [only] = readChoices(parseJson(whole, where), asked)
  if (!only) throw wrong(where, 'the answer has no choices')
  return finish(attempt, only)
}

function placeOf({ vllm, request }: SampleState, endpoint: VllmEndpoint) {
  const path = vllmPaths[endpoint]
  const where = `POST ${vllm.server.url}${path}`
  const asked = { where, width: request.topLogprobs ?? 0, prompt: () => request.prompt.ids }
  return { path, where, asked }
}

function bodyOf(
  { vllm, request }: SampleState,
  frame: { readonly endpoint: VllmEndpoint; readonly stream: boolean; readonly count: number },
): Body {
  const { model } = vllm
  // What is spread stands last: Node 20 takes many times as long to add to what was spread.
  const framed = vllm.frameOf(request, { model, ...frame })
  return vllm.writer.write(pathOf(request), request.prompt.ids, framed, lastsAs(request.prompt))
}

function finish(
  attempt: SampleState,
  choice: Pick<Generated, 'ids' | 'logprobs' | 'top' | 'finish' | 'experts'> & {
    readonly weights?: unknown
  },
  cached?: number,
): TokenSample {
  const { vllm, request, time } = attempt
  const { ids, logprobs, top, weights } = choice
  const numbers = Array.isArray(weights) ? weights.map(name => vllm.versions.read(name)) : undefined
  const shape = vllm.options.experts
  const place = {
    where: vllm.server.url,
    prompt: request.prompt.ids.length,
    sampled: ids.length,
    from: request.expertsFrom ?? 0,
  }
  return toTokenSample({
    ids,
    logprobs,
    top,
    finish: choice.finish,
    experts: shape && readExperts(choice.experts, shape, place),
    basis: basisOf(vllm, request),
    version: numbers
      ? versionRange(numbers[0], numbers.at(-1)!)
      : rangeSince(attempt.version, vllm),
    usage: {
      prompt: request.prompt.ids.length,
      sampled: ids.length,
      seconds: (vllm.clock.now() - time) / 1000,
      ...(cached === undefined ? {} : { cached }),
    },
  })
}

/** Raw numbers are those of temperature 1; those of a form are always among what it allows. */
function basisOf({ logprobs }: Vllm, { sampling, form }: SampleRequest): LogprobBasis {
  const isRaw = logprobs === 'raw' || sampling.temperature === 0
  if (isRaw && sampling.temperature !== 1) return 'raw'
  return form || (!isRaw && isCut(sampling)) ? 'renormalised' : 'tempered'
}

function rangeSince(from: number, { version }: Vllm): VersionRange {
  return { from, to: Math.max(from, version()) }
}

/** The server gives a prompt's log-probabilities at temperature 1, whatever is asked for. */
function score(
  vllm: Vllm,
  scored: { readonly ids: Int32Array; readonly from: number } & ScoreOptions,
  call: Call,
): Promise<Scores> {
  return withEndpoint(vllm, async endpoint => {
    checkScored(scored.from, scored.ids.length)
    const before = vllm.version()
    const path = vllmPaths[endpoint]
    const where = `POST ${vllm.server.url}${path}`
    const answer = await askToScore(vllm, endpoint, scored, call)
    const value = promptLogprobs(asObject(answer, where, 'the answer'), where)
    const logprobs = readPromptLogprobs(value, where, scored)
    const basis = scored.temperature === 1 ? 'tempered' : 'raw'
    return { logprobs, basis, version: rangeSince(before, vllm) }
  })
}

async function askToScore(
  vllm: Vllm,
  endpoint: VllmEndpoint,
  { ids, session, images }: { readonly ids: Int32Array } & ScoreOptions,
  call: Call,
): Promise<unknown> {
  const { model, server, writer, options } = vllm
  const told = (request: ServerRequest) => withSession(request, session, options)
  if (images) {
    const frame = vllmScoreFrame({ endpoint: 'generate', model, stream: false, count: 1 })
    return await vllm.askWithImages({ ids, images, frame, told }, call)
  }
  const path = vllmPaths[endpoint]
  const body = writer.write('', ids, vllmScoreFrame({ endpoint, model, stream: false, count: 1 }))
  const answer = await ask(server, told({ path, body: body.bytes }), call)
  body.keep()
  return parseJson(answer, `POST ${server.url}${path}`)
}

/** `generate` has them beside its choices, `completions` within them. */
function promptLogprobs(answer: Fields, where: string): unknown {
  if (answer.prompt_logprobs) return answer.prompt_logprobs
  const [choice] = asArray(answer.choices, where, 'choices')
  return asObject(choice, where, 'choices[0]').prompt_logprobs
}
