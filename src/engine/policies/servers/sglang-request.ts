import type { SampleRequest, ScoreOptions } from '../../../base/core/policy.ts'
import { sglangForm } from '../form/engines.ts'
import type { BodyFrame } from '../transport/prompt-body.ts'

/** How a body of `/generate` is framed. */
export interface GenerateFrame {
  readonly rid: string
  readonly stream: boolean
  /** The adapter to sample from, by the name it was loaded under. */
  readonly adapter: string | undefined
}

/** The body that asks for a sample. */
export function sampleFrame(
  request: SampleRequest,
  { rid, stream, adapter }: GenerateFrame,
): BodyFrame {
  const rest = JSON.stringify({
    rid,
    stream,
    ...expertsAsked(request),
    ...(adapter !== undefined && { lora_path: adapter }),
    sampling_params: paramsOf(request, request.seed),
    ...answerFields(request),
  })
  return { head: '{"input_ids":[', tail: `],${rest.slice(1)}` }
}

/** The samples of a batch: each has its own seed and name. */
export interface SeveralFrame extends Pick<GenerateFrame, 'adapter'> {
  readonly seeds: readonly number[]
  readonly rids: readonly string[]
}

/** The body of several samples of one prompt: a batch, because only then each has its own seed. */
export function severalBody(
  request: SampleRequest,
  prompt: Buffer,
  { seeds, rids, adapter }: SeveralFrame,
): Buffer {
  const rest = JSON.stringify({
    ...(adapter !== undefined && { lora_path: seeds.map(() => adapter) }),
    rid: rids,
    sampling_params: seeds.map(seed => paramsOf(request, seed)),
    ...answerFields(request),
    ...expertsAsked(request),
    stream: false,
  })
  const pieces: Buffer[] = []
  for (const index of seeds.keys()) {
    pieces.push(Buffer.from(index === 0 ? '{"input_ids":[' : ','), prompt)
  }
  return Buffer.concat([...pieces, Buffer.from(`],${rest.slice(1)}`)])
}

/** The body that asks for the log-probabilities of the prompt itself. */
export function scoreFrame(
  from: number,
  { temperature, adapter }: Pick<ScoreOptions, 'temperature'> & Pick<GenerateFrame, 'adapter'>,
): BodyFrame {
  const rest = JSON.stringify({
    ...(adapter !== undefined && { lora_path: adapter }),
    sampling_params: { max_new_tokens: 1, temperature, ignore_eos: true },
    return_logprob: true,
    // The first entry of what comes back has no value, so it must be the token before.
    logprob_start_len: from - 1,
    top_logprobs_num: 0,
    return_text_in_logprobs: false,
    stream: false,
  })
  return { head: '{"input_ids":[', tail: `],${rest.slice(1)}` }
}

function answerFields({ topLogprobs = 0 }: SampleRequest): object {
  return {
    return_logprob: true,
    logprob_start_len: -1,
    top_logprobs_num: topLogprobs,
    return_text_in_logprobs: false,
  }
}

function expertsAsked({ expertsFrom }: SampleRequest): object {
  if (expertsFrom === undefined) return {}
  return { return_routed_experts: true, routed_experts_start_len: expertsFrom }
}

function paramsOf(request: SampleRequest, seed: number): object {
  const { sampling, stopIds, stopStrings } = request
  return {
    max_new_tokens: request.maxTokens,
    sampling_seed: seed,
    n: 1,
    min_new_tokens: 0,
    temperature: sampling.temperature,
    top_p: sampling.topP,
    top_k: sampling.topK === 0 ? -1 : sampling.topK,
    min_p: sampling.minP,
    frequency_penalty: 0,
    presence_penalty: 0,
    repetition_penalty: 1,
    stop: stopStrings,
    stop_token_ids: stopIds,
    ignore_eos: false,
    skip_special_tokens: false,
    spaces_between_special_tokens: false,
    no_stop_trim: true,
    ...sglangForm(request.form),
  }
}
