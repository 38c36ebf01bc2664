import type { Call } from '../core/call.ts'
import type {
  Finish,
  Policy,
  PolicyCapabilities,
  SampleRequest,
  TokenSample,
} from '../core/policy.ts'
import { sampled, type TopLogprobs } from '../core/segment.ts'
import { openTokenizer, type Tokenizer } from '../text/tokenizer.ts'
import type { EmbeddedModel, EmbeddedSample } from './model.ts'
import { toModelFiles } from './vocabulary.ts'

/** What an embedded policy is told besides its model. */
export interface EmbeddedPolicyOptions {
  /** The folder its tokenizer and template lie in, for whoever renders for it. */
  readonly folder?: string
  /** Seconds on a clock that never runs backwards; samples are recorded as taking none without it. */
  readonly clock?: () => number
  /** Whether disposing of the policy ends the model too. @default true */
  readonly ownsModel?: boolean
}

/** The policy that runs inside, with the model behind it: trainers change its weights. */
export interface EmbeddedPolicy extends Policy {
  readonly model: EmbeddedModel
}

/** Whether a policy is the one that runs inside. */
export function isEmbedded(policy: Policy): policy is EmbeddedPolicy {
  return 'model' in policy && policy.name.startsWith('embedded')
}

/** A policy that samples from an embedded model; its version is the model's. */
export function embeddedPolicy(
  model: EmbeddedModel,
  options: EmbeddedPolicyOptions = {},
): EmbeddedPolicy {
  const { folder, clock = () => 0, ownsModel = true } = options
  return {
    name: folder === undefined ? 'embedded' : `embedded:${folder}`,
    capabilities,
    model,
    sample: (request, call) => sample({ model, clock }, request, call),
    async score(ids, from, { temperature }, call) {
      if (!(Number.isInteger(from) && from >= 1 && from <= ids.length)) {
        const { length } = ids
        throw new RangeError(
          `Scoring ${length} tokens must begin at place 1 to ${length}, got ${from}.`,
        )
      }
      const before = model.version()
      const { logprobs } = await model.score(ids, from, { temperature }, call)
      const version = { from: before, to: model.version() }
      return { logprobs, basis: basisAt(temperature), version }
    },
    async describe() {
      return { context: model.shape.context, ...(folder !== undefined && { model: folder }) }
    },
    async [Symbol.asyncDispose]() {
      if (ownsModel) await model[Symbol.asyncDispose]()
    },
  }
}

const capabilities: PolicyCapabilities = {
  ids: true,
  logprobs: true,
  basis: 'tempered',
  topLogprobs: 256,
  entropies: true,
  score: true,
  several: false,
  abort: true,
  seed: true,
  version: true,
  stream: true,
}

/** Greedy tokens have the log-probabilities of temperature 1. */
function basisAt(temperature: number): 'tempered' | 'raw' {
  return temperature === 0 ? 'raw' : 'tempered'
}

interface Sampling {
  readonly model: EmbeddedModel
  readonly clock: () => number
}

async function sample(
  { model, clock }: Sampling,
  request: SampleRequest,
  { signal }: Call,
): Promise<TokenSample> {
  signal.throwIfAborted()
  const started = clock()
  const watcher = openWatcher(request, model)
  const drawn = await model.sample(
    {
      prompt: request.prompt.ids,
      maxTokens: request.maxTokens,
      ...request.sampling,
      stop: request.stopIds,
      seed: request.seed,
      session: request.session,
      topLogprobs: request.topLogprobs ?? 0,
      ...(watcher && { onToken: ({ id }) => watcher.see(id) }),
    },
    { signal: watcher ? AbortSignal.any([signal, watcher.signal]) : signal },
  )
  const stopped = watcher?.stopped
  if (!stopped && drawn.finish === 'abort' && drawn.ids.length === 0) signal.throwIfAborted()
  const length = stopped?.length ?? drawn.ids.length
  return {
    kind: 'tokens',
    segment: toSegment(drawn, length, request),
    finish: stopped?.finish ?? { kind: drawn.finish },
    usage: {
      prompt: request.prompt.ids.length,
      sampled: length,
      cached: drawn.cachedTokens,
      seconds: clock() - started,
    },
  }
}

function toSegment(drawn: EmbeddedSample, length: number, request: SampleRequest) {
  const width = request.topLogprobs ?? 0
  const top = drawn.topLogprobs && width > 0 ? toTop(drawn.topLogprobs, width) : undefined
  return sampled({
    ids: drawn.ids.subarray(0, length),
    logprobs: drawn.logprobs.subarray(0, length),
    entropies: drawn.entropies.subarray(0, length),
    basis: basisAt(request.sampling.temperature),
    version: { from: drawn.version, to: drawn.version },
    ...(top && { top: cutTop(top, length) }),
  })
}

function toTop(candidates: NonNullable<EmbeddedSample['topLogprobs']>, width: number): TopLogprobs {
  const flat = candidates.flat()
  return {
    width,
    ids: Int32Array.from(flat, ({ id }) => id),
    logprobs: Float32Array.from(flat, ({ logprob }) => logprob),
  }
}

function cutTop({ width, ids, logprobs }: TopLogprobs, length: number): TopLogprobs {
  const end = width * length
  return { width, ids: ids.subarray(0, end), logprobs: logprobs.subarray(0, end) }
}

interface Watcher {
  readonly signal: AbortSignal
  /** How the watching ended the sample, and after how many tokens; later ones are not kept. */
  readonly stopped: { readonly finish: Finish; readonly length: number } | undefined
  see(id: number): void
}

/** Watches tokens as they are drawn for a guard and for stop strings; nothing where there are none. */
function openWatcher(request: SampleRequest, model: EmbeddedModel): Watcher | undefined {
  const { watch, stopStrings, maxTokens } = request
  if (!watch && stopStrings.length === 0) return undefined
  const controller = new AbortController()
  const ids = new Int32Array(Math.min(maxTokens, model.shape.context))
  const hasStop = stopStrings.length > 0 ? openStopSearch(stopStrings, model) : () => false
  let length = 0
  let stopped: Watcher['stopped']
  const stop = (finish: Finish): void => {
    stopped = { finish, length }
    controller.abort()
  }
  return {
    signal: controller.signal,
    get stopped() {
      return stopped
    },
    see(id) {
      if (stopped) return
      ids[length++] = id
      if (hasStop(id)) return stop({ kind: 'stop' })
      const guard = watch?.({ ids: ids.subarray(0, length) })
      if (guard !== undefined) stop({ kind: 'guard', guard })
    },
  }
}

const tokenizers = new WeakMap<EmbeddedModel, Tokenizer>()

/** Tells, token by token, whether the text so far holds one of the stop strings. */
function openStopSearch(strings: readonly string[], model: EmbeddedModel): (id: number) => boolean {
  const known = tokenizers.get(model) ?? openTokenizer(toModelFiles('embedded', model.files))
  tokenizers.set(model, known)
  const decoder = known.openDecoder()
  const longest = Math.max(...strings.map(string => string.length))
  let tail = ''
  return id => {
    const text = tail + decoder.push([id])
    tail = text.slice(-longest)
    return strings.some(string => text.includes(string))
  }
}
