import { randomBytes } from 'node:crypto'
import type { Call } from '../../../base/core/call.ts'
import type { PromptImages } from '../../../base/core/image.ts'
import type {
  Policy,
  PolicyCapabilities,
  PolicyDescription,
  SampleRequest,
  Scores,
  TokenSample,
} from '../../../base/core/policy.ts'
import { type Clock, systemClock } from '../../../base/core/process/clock.ts'
import type { LogprobBasis } from '../../../base/core/segment.ts'
import { toTokenSample } from '../sample.ts'
import { follow } from '../transport/follow.ts'
import { lastsAs, makePromptWriter, type PromptWriter, pathOf } from '../transport/prompt-writer.ts'
import {
  asArray,
  asCount,
  checkPromptCount,
  checkScored,
  type Fields,
  parseJson,
  wrong,
} from '../transport/reading.ts'
import { isUnknownPath } from '../transport/server-error.ts'
import { makeVersions, type Versions, versionRange } from '../versions.ts'
import { ask, getObject, readPressure } from './ask.ts'
import type { Generated } from './generated.ts'
import { checkLaidOut } from './image-data.ts'
import { type ExpertShape, readExperts } from './routed-experts.ts'
import { openServer, type Server, type ServerOptions, type ServerRequest } from './server.ts'
import { withSession } from './session-key.ts'
import { makeSglangAborts, type SglangAborts } from './sglang-abort.ts'
import { makeGeneratedStream, readGenerated, readScores } from './sglang-answer.ts'
import { bodyWithImages } from './sglang-images.ts'
import { makeSampleFrames, scoreFrame, severalBody } from './sglang-request.ts'
import { makeWeightSync, sglangSteps, type UpdateMode } from './weight-sync.ts'

/** How to use an SGLang server. */
export interface SglangOptions extends ServerOptions {
  /**
   * `raw` if the server runs with SGLANG_RETURN_ORIGINAL_LOGPROB=1.
   * @default 'processed', or what `takeLogprobs` says
   */
  readonly logprobs?: 'raw' | 'processed'
  /** Asks for the experts that served each token: layers and experts per token of the model. @default none */
  readonly experts?: ExpertShape
  /** Streams every sample, not only watched ones. @default false */
  readonly stream?: boolean
  /** Seconds that an aborted sample may take to hand back its tokens. @default 10 */
  readonly graceSeconds?: number
  /** Shared by the servers of one policy, so that equal names give equal versions. */
  readonly versions?: Versions
  /** Whether requests under way are finished first (`drain`) or aborted when weights change. @default 'drain' */
  readonly update?: UpdateMode
  readonly clock?: Clock
}

interface Sglang {
  readonly server: Server
  readonly where: string
  logprobs: 'raw' | 'processed'
  readonly options: Pick<SglangOptions, 'session'>
  readonly streams: boolean
  readonly experts: ExpertShape | undefined
  readonly aborts: SglangAborts
  readonly versions: Versions
  readonly clock: Clock
  readonly writer: PromptWriter
  readonly frameOf: ReturnType<typeof makeSampleFrames>
  /** A new name for a request. All are of one length: the server aborts by prefix. */
  readonly nextRid: () => string
  /** The adapter that is asked for, if one was loaded. */
  adapter: string | undefined
}

/** One sample under way: when and under which version it began. */
interface SampleState {
  readonly sglang: Sglang
  readonly request: SampleRequest
  readonly time: number
  readonly version: number | undefined
}

/** Opens a policy behind an SGLang server's `/generate`: ids in, ids and log-probabilities out. */
export function openSglang(url: string, options: SglangOptions = {}): Policy {
  const { logprobs = 'processed', stream = false, graceSeconds = 10, clock = systemClock } = options
  const server = openServer(url, options)
  const sglang: Sglang = {
    server,
    where: `POST ${server.url}/generate`,
    logprobs,
    options,
    streams: stream,
    experts: options.experts,
    aborts: makeSglangAborts(server, { graceSeconds, clock }),
    versions: options.versions ?? makeVersions(),
    clock,
    writer: makePromptWriter(),
    frameOf: makeSampleFrames(),
    nextRid: makeRids(),
    adapter: undefined,
  }
  const weights = makeWeightSync(sglangSteps(server), {
    mode: options.update ?? 'drain',
    onUpdated({ version, adapter }) {
      sglang.adapter = adapter
      sglang.versions.read(version)
    },
  })
  return {
    name: `sglang:${server.url}`,
    capabilities: {
      ...capabilitiesOf(logprobs === 'raw' ? 'raw' : 'tempered'),
      ...(options.experts && { experts: true }),
    },
    sample(request, call) {
      const attempt = begin(sglang, request)
      if (request.prompt.images) return sampleShown(attempt, request.prompt.images, call)
      return stream || request.watch ? sampleStreamed(attempt, call) : sampleWhole(attempt, call)
    },
    async sampleSeveral(request, seeds, call) {
      call.signal.throwIfAborted()
      const { images } = request.prompt
      if (!images) return sampleBatch(begin(sglang, request), seeds, call)
      const one = (seed: number) => sampleShown(begin(sglang, { ...request, seed }), images, call)
      return Promise.all(seeds.map(one))
    },
    score: (ids, from, { temperature, images }, call) =>
      score(sglang, { ids, from, temperature, images }, call),
    describe: call => describe(sglang, call),
    pressure: call => readPressure(server, ['sglang:token_usage'], call),
    weights,
    takeLogprobs(found) {
      sglang.logprobs = options.logprobs ?? found
    },
    async [Symbol.asyncDispose]() {
      await sglang.aborts.settle()
      await server[Symbol.asyncDispose]()
    },
  }
}

function makeRids(): () => string {
  const own = randomBytes(8).toString('hex')
  let count = 0
  return () => own + (count++).toString(16).padStart(16, '0')
}

function capabilitiesOf(basis: LogprobBasis): PolicyCapabilities {
  return {
    ids: true,
    logprobs: true,
    basis,
    topLogprobs: 1024,
    entropies: false,
    images: true,
    score: true,
    several: true,
    abort: true,
    // Only with the server's --enable-deterministic-inference.
    seed: false,
    version: true,
    stream: true,
    forms: 'json',
  }
}

function begin(sglang: Sglang, asked: SampleRequest): SampleState {
  return {
    sglang,
    request: withExperts(asked, sglang.experts),
    time: sglang.clock.now(),
    version: sglang.versions.latest,
  }
}

/** Experts are asked for if the server tells them, and not if it does not; mostly nothing changes. */
function withExperts(asked: SampleRequest, experts: ExpertShape | undefined): SampleRequest {
  if (experts) return { expertsFrom: 0, ...asked }
  if (asked.expertsFrom === undefined) return asked
  const { expertsFrom: _, ...plain } = asked
  return plain
}

/** Routers keep requests with one key on one worker, where their prefix is cached; SGLang's own has a header of its own. */
function routed<Sent extends ServerRequest>({ sglang, request }: SampleState, sent: Sent): Sent {
  const { session } = request
  const headers = ['x-smg-routing-key', encodeURIComponent(session)]
  return withSession({ ...sent, headers }, session, sglang.options)
}

async function sampleWhole(attempt: SampleState, call: Call): Promise<TokenSample> {
  call.signal.throwIfAborted()
  const { request } = attempt
  const { server, writer, frameOf, aborts, nextRid, adapter } = attempt.sglang
  const rid = nextRid()
  const frame = frameOf(request, { rid, stream: false, adapter })
  const body = writer.write(pathOf(request), request.prompt.ids, frame, lastsAs(request.prompt))
  const width = request.topLogprobs ?? 0
  const reading = { kind: 'sglang-generate', width } as const
  const sent = routed(attempt, { path: '/generate', body: body.bytes })
  const exchange = server.startRead(sent, reading)
  const release = aborts.watch(exchange, [rid], call)
  try {
    const answer = await exchange.answer
    body.keep()
    return finish(attempt, answer)
  } finally {
    release()
  }
}

async function sampleStreamed(attempt: SampleState, call: Call): Promise<TokenSample> {
  call.signal.throwIfAborted()
  const { request } = attempt
  const { server, writer, frameOf, aborts, where, versions, nextRid, adapter } = attempt.sglang
  const rid = nextRid()
  const width = request.topLogprobs ?? 0
  const frame = frameOf(request, { rid, stream: true, adapter })
  const body = writer.write(pathOf(request), request.prompt.ids, frame, lastsAs(request.prompt))
  const stream = makeGeneratedStream(where, width)
  const followed = await follow(
    {
      where,
      start: onEvents =>
        server.start(routed(attempt, { path: '/generate', body: body.bytes, onEvents })),
      take: stream.take,
      ids: () => stream.ids,
      watch: request.watch,
    },
    call,
  )
  if (followed.stopped) aborts.abort(rid)
  body.keep()
  if (followed.body.length > 0) {
    return finish(attempt, readGenerated(parseJson(followed.body, where), where, width))
  }
  const generated = stream.finish(followed.stopped)
  const version = stream.weights.length > 0 ? versions.read(stream.weights[0]) : attempt.version
  return finish({ ...attempt, version }, generated)
}

/** Behind images a sample comes whole: the server says with it how it read the prompt. */
async function sampleShown(
  attempt: SampleState,
  images: PromptImages,
  call: Call,
): Promise<TokenSample> {
  const { request, sglang } = attempt
  const { server, frameOf, aborts, nextRid, adapter, where } = sglang
  const { ids } = request.prompt
  const rid = nextRid()
  const body = await bodyWithImages(ids, images, frameOf(request, { rid, stream: false, adapter }))
  call.signal.throwIfAborted()
  const exchange = server.start(routed(attempt, { path: '/generate', body }))
  const release = aborts.watch(exchange, [rid], call)
  const answer = parseJson(await exchange.answer.finally(release), where)
  checkLaidOut(answer, ids, where)
  return finish(attempt, readGenerated(answer, where, request.topLogprobs ?? 0))
}

const listFrame = { head: '[', tail: ']' }

async function sampleBatch(
  attempt: SampleState,
  seeds: readonly number[],
  call: Call,
): Promise<readonly TokenSample[]> {
  const { request, sglang } = attempt
  if (sglang.streams || request.watch) {
    const one = (seed: number) => begin(sglang, { ...request, seed })
    return Promise.all(seeds.map(seed => sampleStreamed(one(seed), call)))
  }
  const rids = seeds.map(sglang.nextRid)
  const prompt = sglang.writer.write(
    pathOf(request),
    request.prompt.ids,
    listFrame,
    lastsAs(request.prompt),
  )
  const body = severalBody(request, prompt.bytes, { seeds, rids, adapter: sglang.adapter })
  prompt.keep()
  const exchange = sglang.server.start(routed(attempt, { path: '/generate', body }))
  const release = sglang.aborts.watch(exchange, rids, call)
  const answer = await exchange.answer.finally(release)
  const answers = asArray(parseJson(answer, sglang.where), sglang.where, 'the answer to a batch')
  if (answers.length !== seeds.length) {
    const problem = `the answer has ${answers.length} samples where ${seeds.length} were asked for`
    throw wrong(sglang.where, problem)
  }
  const width = request.topLogprobs ?? 0
  return answers.map(answer => finish(attempt, readGenerated(answer, sglang.where, width)))
}

function finish(attempt: SampleState, generated: Generated): TokenSample {
  const { sglang, request, time } = attempt
  const { ids, logprobs, top, weights, promptTokens, cachedTokens } = generated
  const sent = request.prompt.ids.length
  checkPromptCount(promptTokens, sent, sglang.where)
  const names = Array.isArray(weights) ? weights : [weights]
  const numbers = names.map(name => sglang.versions.read(name))
  const version = numbers.at(-1)!
  // Spans say with which weights it began; without them, use the version last seen before.
  const began = names.length > 1 ? numbers[0] : attempt.version
  const name = names.at(-1)
  const place = { where: sglang.where, prompt: sent, sampled: ids.length }
  const { expertsFrom: from = 0 } = request
  return toTokenSample({
    ids,
    logprobs,
    top,
    experts: sglang.experts && readExperts(generated.experts, sglang.experts, { ...place, from }),
    basis: request.form ? 'renormalised' : basisOf(sglang, request.sampling.temperature),
    version: versionRange(began, version),
    finish: generated.finish,
    usage: {
      prompt: sent,
      sampled: ids.length,
      seconds: (sglang.clock.now() - time) / 1000,
      ...(cachedTokens === undefined ? {} : { cached: cachedTokens }),
      ...(name === undefined || String(name) === String(version) ? {} : { weights: String(name) }),
    },
  })
}

/** Raw numbers are those of temperature 1: if that is the temperature, they are tempered ones. */
function basisOf({ logprobs }: Sglang, temperature: number): LogprobBasis {
  return logprobs === 'raw' && temperature !== 1 ? 'raw' : 'tempered'
}

interface Scoring {
  readonly ids: Int32Array
  readonly from: number
  readonly temperature: number
  readonly images?: PromptImages | undefined
}

/** The server gives a prompt's log-probabilities at temperature 1, whatever is asked for. */
async function score(sglang: Sglang, scoring: Scoring, call: Call): Promise<Scores> {
  const { ids, from, temperature } = scoring
  checkScored(from, ids.length)
  const before = sglang.versions.latest
  const answer = await askToScore(sglang, scoring, call)
  const scored = readScores(answer, sglang.where, ids.subarray(from))
  return {
    logprobs: scored.logprobs,
    basis: temperature === 1 ? 'tempered' : 'raw',
    version: versionRange(before, sglang.versions.read(scored.weights)),
  }
}

async function askToScore(
  { server, writer, adapter, where }: Sglang,
  { ids, from, temperature, images }: Scoring,
  call: Call,
): Promise<unknown> {
  const frame = scoreFrame(from, { temperature, adapter })
  if (images) {
    const body = await bodyWithImages(ids, images, frame)
    const answer = parseJson(await ask(server, { path: '/generate', body }, call), where)
    checkLaidOut(answer, ids, where)
    return answer
  }
  const body = writer.write('', ids, frame)
  const answer = await ask(server, { path: '/generate', body: body.bytes }, call)
  body.keep()
  return parseJson(answer, where)
}

async function describe(sglang: Sglang, call: Call): Promise<PolicyDescription> {
  const { server, versions } = sglang
  const model = await getObject(server, ['/model_info', '/get_model_info'], call)
  const info = await serverInfo(server, call)
  const where = `GET ${server.url}/server_info`
  if (model.weight_version !== undefined) versions.read(model.weight_version)
  // Its memory may hold less than its context; if neither is told, as by a router, nothing is known.
  const told = [
    asCount(info.context_length, where, 'context_length'),
    asCount(info.max_req_input_len, where, 'max_req_input_len'),
  ].filter(each => each !== undefined)
  return {
    ...(typeof model.model_path === 'string' ? { model: model.model_path } : {}),
    ...(told.length === 0 ? {} : { context: Math.min(...told) }),
  }
}

/** A router has no such endpoint. */
async function serverInfo(server: Server, call: Call): Promise<Fields> {
  try {
    return await getObject(server, ['/server_info', '/get_server_info'], call)
  } catch (cause) {
    if (isUnknownPath(cause)) return {}
    throw cause
  }
}
