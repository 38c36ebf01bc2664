import { openTokenizer, type Tokenizer } from '@espalier/text/tokenizers'
import type { Call } from '../../base/core/call.ts'
import type { Finish, Sampling, Watch } from '../../base/core/policy.ts'
import type { TopLogprobs } from '../../base/core/segment.ts'
import type { EmbeddedModel, EmbeddedSample } from './model.ts'
import type { TokenNews } from './protocol.ts'
import { toModelFiles } from './vocabulary.ts'

/** A prompt to be continued, with everything that can end it. */
export interface DrawRequest {
  readonly prompt: Int32Array
  readonly maxTokens: number
  readonly sampling: Sampling
  readonly stopIds: readonly number[]
  readonly stopStrings: readonly string[]
  readonly seed: number
  readonly session?: string
  /** @default 0 */
  readonly topLogprobs?: number
  /** Names the guard that wants the sample stopped. */
  readonly watch?: Watch
  /** Sees every token that is kept. */
  readonly onToken?: (token: TokenNews) => void
}

/** What was drawn, up to the token at which it was stopped. */
export interface Drawn {
  readonly ids: Int32Array
  readonly logprobs: Float32Array
  readonly entropies: Float32Array
  readonly top?: TopLogprobs
  readonly finish: Finish
  /** The stop string that ended it, if one did. */
  readonly matched?: string
  readonly version: number
  readonly cachedTokens: number
}

/** Continues a prompt. Stop strings and guards act between tokens, so that it ends at the same one. */
export async function draw(
  model: EmbeddedModel,
  request: DrawRequest,
  { signal }: Call,
): Promise<Drawn> {
  signal.throwIfAborted()
  const watcher = makeWatcher(request, model)
  const { prompt, maxTokens, sampling, stopIds, seed, session, topLogprobs = 0 } = request
  const drawn = await model.sample(
    {
      prompt,
      maxTokens,
      ...sampling,
      stop: stopIds,
      seed,
      ...(session !== undefined && { session }),
      topLogprobs,
      ...(watcher && { onToken: watcher.see }),
    },
    { signal: watcher ? AbortSignal.any([signal, watcher.signal]) : signal },
  )
  const stopped = watcher?.stopped()
  if (!stopped && drawn.finish === 'abort' && drawn.ids.length === 0) signal.throwIfAborted()
  const length = stopped?.length ?? drawn.ids.length
  return {
    ids: drawn.ids.subarray(0, length),
    logprobs: drawn.logprobs.subarray(0, length),
    entropies: drawn.entropies.subarray(0, length),
    ...(drawn.topLogprobs && topLogprobs > 0 && { top: toTop(drawn.topLogprobs, length) }),
    finish: stopped?.finish ?? { kind: drawn.finish },
    ...(stopped?.matched !== undefined && { matched: stopped.matched }),
    version: drawn.version,
    cachedTokens: drawn.cachedTokens,
  }
}

function toTop(
  candidates: NonNullable<EmbeddedSample['topLogprobs']>,
  length: number,
): TopLogprobs {
  const flat = candidates.slice(0, length).flat()
  return {
    width: length === 0 ? 0 : flat.length / length,
    ids: Int32Array.from(flat, ({ id }) => id),
    logprobs: Float32Array.from(flat, ({ logprob }) => logprob),
  }
}

interface Stopped {
  readonly finish: Finish
  readonly length: number
  readonly matched?: string
}

interface Watcher {
  readonly signal: AbortSignal
  /** How a watcher stopped the sample; undefined if none did. */
  stopped(): Stopped | undefined
  readonly see: (token: TokenNews) => void
}

/** Watches tokens as they are drawn; undefined if the request has nothing to watch for. */
function makeWatcher(request: DrawRequest, model: EmbeddedModel): Watcher | undefined {
  const { watch, onToken, stopStrings, maxTokens } = request
  if (!watch && !onToken && stopStrings.length === 0) return undefined
  const controller = new AbortController()
  const ids = new Int32Array(Math.min(maxTokens, model.shape.context))
  const findStop = makeStopSearch(stopStrings, model)
  let length = 0
  let stopped: Stopped | undefined
  const stop = (how: Omit<Stopped, 'length'>): void => {
    stopped = { ...how, length }
    controller.abort()
  }
  return {
    signal: controller.signal,
    stopped: () => stopped,
    see(token) {
      // Drop tokens that were drawn before the stop reached the model.
      if (stopped) return
      ids[length++] = token.id
      onToken?.(token)
      const matched = findStop(token.id)
      if (matched !== undefined) return stop({ finish: { kind: 'stop' }, matched })
      const guard = watch?.({ ids: ids.subarray(0, length) })
      if (guard !== undefined) stop({ finish: { kind: 'guard', guard } })
    },
  }
}

const tokenizers = new WeakMap<EmbeddedModel, Tokenizer>()

/** The tokenizer that came with a model, opened once. */
export function tokenizerOf(model: EmbeddedModel): Tokenizer {
  const known = tokenizers.get(model)
  if (known) return known
  const { tokenizer, config } = toModelFiles('embedded', model.files)
  const opened = openTokenizer({ tokenizer, config })
  tokenizers.set(model, opened)
  return opened
}

/** Tells, token by token, which of the stop strings the text so far holds. */
function makeStopSearch(
  strings: readonly string[],
  model: EmbeddedModel,
): (id: number) => string | undefined {
  if (strings.length === 0) return () => undefined
  const decoder = tokenizerOf(model).makeDecoder()
  const longest = Math.max(...strings.map(string => string.length))
  let tail = ''
  return id => {
    const text = tail + decoder.push([id])
    tail = text.slice(-longest)
    return strings.find(string => text.includes(string))
  }
}
