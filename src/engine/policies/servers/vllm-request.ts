import type { SampleRequest, Sampling } from '../../../base/core/policy.ts'
import { vllmForm } from '../form/engines.ts'
import type { BodyFrame } from '../transport/prompt-body.ts'

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

/** The body that asks for samples; everything is stated, so that no `generation_config` applies. */
export function vllmSampleFrame(request: SampleRequest, options: VllmFrame): BodyFrame {
  const { endpoint, count } = options
  const parameters = {
    seed: request.seed,
    max_tokens: request.maxTokens,
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
  return frameOf(parameters, options)
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
