import type { Foreign } from '../foreign.ts'
import {
  type Answer,
  answerTo,
  openServing,
  paced,
  type Serving,
  type ServingOptions,
  streamEvents,
  type Turn,
} from './serving.ts'

/** How the vLLM server behaves. */
export interface VllmServerOptions extends ServingOptions {
  /** Is without `/inference/v1/generate`, as older servers are. @default false */
  readonly withoutGenerate?: boolean
  /** The tokens that its model takes. @default 4096 */
  readonly context?: number
  /** The prompt that it says it has read. @default the one that was sent */
  readonly reads?: (prompt: readonly number[]) => readonly number[]
}

/** Opens a server that speaks vLLM's `/inference/v1/generate` and `/v1/completions`. */
export function openVllmServer(options: VllmServerOptions = {}): Promise<Serving> {
  return openServing(options, {
    generations: {
      ...(options.withoutGenerate
        ? {}
        : { '/inference/v1/generate': turn => generate(turn, options) }),
      '/v1/completions': turn => complete(turn, options),
    },
    others: {
      '/v1/models': ({ json }) =>
        json({
          data: [{ id: 'served', root: 'test/model', max_model_len: options.context ?? 4096 }],
        }),
      '/health': ({ response }) => response.end(),
    },
    tooLong: {
      error: {
        message:
          "This model's maximum context length is 4096 tokens. However, your prompt contains 5000 input tokens.",
        type: 'BadRequestError',
        param: 'input_tokens',
        code: 400,
      },
    },
  })
}

/** The parameters as they lie in the body, in either place. */
function answersOf(turn: Turn, prompt: number[], parameters: Foreign, options: ServingOptions) {
  return Array.from({ length: parameters.n ?? 1 }, (_, offset) =>
    answerTo(
      {
        prompt,
        // The server's own default.
        maxTokens: parameters.max_tokens ?? 16,
        index: turn.index + offset,
        seed: parameters.seed === undefined ? undefined : parameters.seed + offset,
      },
      turn.fault,
      options,
    ),
  )
}

function generate(turn: Turn, options: VllmServerOptions): void {
  const { body } = turn
  const parameters = body.sampling_params
  const answers = answersOf(turn, body.token_ids, parameters, options)
  const render = (answer: Answer, from: number, to: number, isLast: boolean) => ({
    token_ids: answer.ids.slice(from, to),
    logprobs: { content: entries(answer, from, { to, width: parameters.logprobs }) },
    finish_reason: isLast ? answer.finish : null,
  })
  if (body.stream) {
    stream(turn, options, { answer: answers[0]!, render, envelope: { request_id: 'r' } })
    return
  }
  const whole = {
    request_id: 'r',
    choices: answers.map((answer, index) => ({
      index,
      ...render(answer, 0, answer.ids.length, true),
    })),
    ...(parameters.prompt_logprobs === undefined
      ? {}
      : { prompt_logprobs: promptTables(body.token_ids) }),
  }
  paced(turn, answers[0]!.ids.length * (options.pace ?? 0), () => turn.json(whole))
}

function complete(turn: Turn, options: VllmServerOptions): void {
  const { body } = turn
  const { reads = prompt => prompt } = options
  const answers = answersOf(turn, body.prompt, body, options)
  const render = (answer: Answer, from: number, to: number, isLast: boolean) => ({
    text: 'the text is not looked at',
    token_ids: body.return_token_ids ? answer.ids.slice(from, to) : null,
    prompt_token_ids: body.return_token_ids && from === 0 ? reads(body.prompt) : null,
    logprobs: columns(answer, from, { to, width: body.logprobs }),
    finish_reason: isLast ? answer.finish : null,
    stop_reason: null,
  })
  if (body.stream) {
    stream(turn, options, {
      answer: answers[0]!,
      render,
      envelope: { id: 'cmpl', model: 'served' },
    })
    return
  }
  const whole = {
    id: 'cmpl',
    model: 'served',
    choices: answers.map((answer, index) => ({
      index,
      ...render(answer, 0, answer.ids.length, true),
      prompt_logprobs: body.prompt_logprobs === undefined ? null : promptTables(body.prompt),
    })),
    usage: {
      prompt_tokens: body.prompt.length,
      completion_tokens: answers[0]!.ids.length,
      prompt_tokens_details: { cached_tokens: 1 },
    },
  }
  paced(turn, answers[0]!.ids.length * (options.pace ?? 0), () => turn.json(whole))
}

interface Streamed {
  readonly answer: Answer
  readonly render: (answer: Answer, from: number, to: number, isLast: boolean) => object
  readonly envelope: object
}

/** Pieces carry only what is new; the one that tells the end may carry nothing. */
function stream(turn: Turn, options: ServingOptions, { answer, render, envelope }: Streamed): void {
  const { length } = answer.ids
  let count = 0
  streamEvents(turn, options.pace ?? 0, () => {
    if (count > length) return undefined
    const from = count++
    const choice = render(answer, from, Math.min(count, length), count > length)
    return { ...envelope, choices: [{ index: 0, ...choice }] }
  })
}

interface Slice {
  readonly to: number
  readonly width: number | undefined
}

/** The sampled token first, even where it is not among the best, then cut to the width. */
function entries({ ids, logprobs }: Answer, from: number, { to, width = 0 }: Slice) {
  return logprobs.slice(from, to).map((logprob, index) => {
    const id = ids[from + index]!
    return {
      token: `token_id:${id}`,
      logprob,
      bytes: null,
      top_logprobs: ranked(id, logprob, width).slice(0, Math.max(width, 1)),
    }
  })
}

function columns({ ids, logprobs }: Answer, from: number, { to, width = 0 }: Slice) {
  const part = logprobs.slice(from, to)
  return {
    text_offset: [],
    token_logprobs: part,
    tokens: part.map((_, index) => `token_id:${ids[from + index]}`),
    top_logprobs: part.map((logprob, index) =>
      Object.fromEntries(
        ranked(ids[from + index]!, logprob, width).map(({ token, logprob: value }) => [
          token,
          value,
        ]),
      ),
    ),
  }
}

function ranked(id: number, logprob: number, width: number) {
  const best = Array.from({ length: width }, (_, rank) => ({
    token: `token_id:${id + 1 + rank}`,
    logprob: -0.01 - rank,
  }))
  return [{ token: `token_id:${id}`, logprob }, ...best]
}

function promptTables(prompt: readonly number[]): readonly unknown[] {
  return prompt.map((id, index) =>
    index === 0 ? null : { [id]: { logprob: -id / 1024, rank: 1, decoded_token: null } },
  )
}
