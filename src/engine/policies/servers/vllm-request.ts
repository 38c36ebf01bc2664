import type { SampleRequest, Sampling } from '../../../base/core/policy.ts'
import { vllmForm } from '../form/engines.ts'
import type { BodyFrame } from '../transport/prompt-writer.ts'
import { isSameIn, sharedFields } from './same-fields.ts'

/** The two ways to give a vLLM server tokens. */
export type VllmEndpoint = 'generate' | 'completions'

/** Where each is served. */
export const vllmPaths: Readonly<Record<VllmEndpoint, string>> = {
  generate: '/inference/v1/generate',
  completions: '/v1/completions',
}

/** What a body says besides the sample itself. */
export interface VllmFrame {
  readonly endpoint: VllmEndpoint
  /** The name under which the server serves the model, if it serves several. */
  readonly model: string | undefined
  readonly stream: boolean
  /** How many samples; the i-th is drawn with the seed plus i. */
  readonly count: number
}

/**
 * Writes the bodies of samples; everything is stated, so that no `generation_config` applies. What does not change
 * from one to the next is written once.
 */
export function makeVllmFrames(): (request: SampleRequest, options: VllmFrame) => BodyFrame {
  let last: SampleRequest | undefined
  let framed: VllmFrame | undefined
  let head = ''
  let before = ''
  let rest = Buffer.alloc(0)
  return (request, options) => {
    if (!isSameIn(last, request, sharedFields) || !isSameIn(framed, options, frameFields)) {
      last = request
      framed = options
      const frame = frameOf(parametersOf(request, options), options)
      const own = frame.tail.indexOf(ownNumbers)
      head = frame.head
      before = frame.tail.slice(0, own)
      rest = Buffer.from(frame.tail.slice(own + ownNumbers.length))
    }
    const { seed, maxTokens } = request
    return { head, tail: `${before}"seed":${seed},"max_tokens":${maxTokens}`, rest }
  }
}

/** Stands for what differs from sample to sample. */
const ownNumbers = '"seed":0,"max_tokens":0'

const frameFields = ['endpoint', 'model', 'stream', 'count'] as const

function parametersOf(request: SampleRequest, { endpoint, count }: VllmFrame): object {
  return {
    // These two come first, so that a stop string cannot be taken for them.
    seed: 0,
    max_tokens: 0,
    ...samplingOf(request.sampling),
    n: count,
    min_tokens: 0,
    stop: request.stopStrings,
    stop_token_ids: request.stopIds,
    ignore_eos: false,
    include_stop_str_in_output: true,
    logprobs: widthFor(endpoint, request.topLogprobs ?? 0),
    ...vllmForm(request.form),
  }
}

/** The body that asks for the log-probabilities of the prompt itself. */
export function vllmScoreFrame(options: VllmFrame): BodyFrame {
  const plain = { temperature: 1, topP: 1, topK: 0, minP: 0 }
  const parameters = { ...samplingOf(plain), n: 1, max_tokens: 1, prompt_logprobs: 0 }
  return frameOf(parameters, options)
}

/**
 * Candidates are listed with the sampled token first, even if it is not among the best, and
 * `generate` cuts that list to the number asked for: so one more is needed there.
 */
function widthFor(endpoint: VllmEndpoint, candidates: number): number {
  if (candidates === 0) return 1
  return endpoint === 'generate' ? candidates + 1 : candidates
}

function samplingOf(sampling: Sampling): object {
  return {
    temperature: sampling.temperature,
    top_p: sampling.topP,
    top_k: sampling.topK === 0 ? -1 : sampling.topK,
    min_p: sampling.minP,
    presence_penalty: 0,
    frequency_penalty: 0,
    repetition_penalty: 1,
    skip_special_tokens: false,
    spaces_between_special_tokens: false,
  }
}

function frameOf(parameters: object, { endpoint, model, stream }: VllmFrame): BodyFrame {
  const common = { ...(model === undefined ? {} : { model }), stream }
  const rest =
    endpoint === 'generate'
      ? { sampling_params: parameters, ...common }
      : { ...parameters, ...common, return_token_ids: true, return_tokens_as_token_ids: true }
  const name = endpoint === 'generate' ? 'token_ids' : 'prompt'
  return { head: `{"${name}":[`, tail: `],${JSON.stringify(rest).slice(1)}` }
}
