import type { SampleRequest, ScoreOptions } from '../../../base/core/policy.ts'
import { sglangForm } from '../form/engines.ts'
import type { BodyFrame } from '../transport/prompt-writer.ts'
import { isSameIn, sharedFields } from './same-fields.ts'

/** How a body of `/generate` is framed. */
export interface GenerateFrame {
  readonly rid: string
  readonly stream: boolean
  /** The adapter to sample from, by the name it was loaded under. */
  readonly adapter: string | undefined
}

/** Writes the bodies of samples; what does not change from one to the next is written once. */
export function makeSampleFrames(): (request: SampleRequest, frame: GenerateFrame) => BodyFrame {
  const common = openCommon()
  return (request, { rid, stream, adapter }) => {
    const { maxTokens, seed } = request
    const own = `"max_new_tokens":${maxTokens},"sampling_seed":${seed}`
    const asked = request.expertsFrom === undefined ? '' : expertsText(request.expertsFrom)
    return {
      head: '{"input_ids":[',
      tail: `],"rid":"${rid}","stream":${stream},${asked}${adapterText(adapter)}"sampling_params":{${own},`,
      rest: common(request),
    }
  }
}

function expertsText(from: number): string {
  return `"return_routed_experts":true,"routed_experts_start_len":${from},`
}

function adapterText(adapter: string | undefined): string {
  return adapter === undefined ? '' : `"lora_path":${JSON.stringify(adapter)},`
}

/** Requests of one run share their sampling and stops, so the last text can nearly always be used again. */
function openCommon(): (request: SampleRequest) => Buffer {
  let last: SampleRequest | undefined
  let text = Buffer.alloc(0)
  return request => {
    if (isSameIn(last, request, sharedFields)) return text
    last = request
    const sampling = JSON.stringify(samplingOf(request)).slice(1)
    text = Buffer.from(`${sampling},${JSON.stringify(answerFields(request)).slice(1)}`)
    return text
  }
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
    sampling_params: seeds.map(seed => ({
      ...samplingOf(request),
      max_new_tokens: request.maxTokens,
      sampling_seed: seed,
    })),
    ...answerFields(request),
    ...(request.expertsFrom !== undefined && {
      return_routed_experts: true,
      routed_experts_start_len: request.expertsFrom,
    }),
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

function samplingOf(request: SampleRequest): object {
  const { sampling, stopIds, stopStrings } = request
  return {
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
