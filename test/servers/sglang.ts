import type {
  PolicyScene,
  StagedPolicy,
} from '../../src/base/core/conformance/policy.conformance.ts'
import type { Policy } from '../../src/base/core/policy.ts'
import type { SglangOptions } from '../../src/engine/policies/servers/sglang.ts'
import {
  type Answer,
  answerTo,
  openServing,
  type Serving,
  type ServingOptions,
  streamEvents,
  type Turn,
} from './serving.ts'
import { openStage, statedSampling } from './staged.ts'

/** How the SGLang server behaves. */
export interface SglangServerOptions extends ServingOptions {
  /** Streams only what is new, as with `--incremental-streaming-output`. @default false */
  readonly incremental?: boolean
  /** Leaves `output_ids` out, as older servers do. @default false */
  readonly withoutOutputIds?: boolean
}

interface Running {
  readonly stop: () => void
}

/** Opens a server that speaks SGLang's `/generate`, `/abort_request` and what describes it. */
export function openSglangServer(options: SglangServerOptions = {}): Promise<Serving> {
  const running = new Map<string, Running>()
  return openServing(options, {
    generations: { '/generate': turn => generate(turn, options, running) },
    others: {
      '/abort_request': ({ body, response }) => {
        // The scheduler matches by prefix.
        for (const [rid, { stop }] of running) if (rid.startsWith(body.rid)) stop()
        response.end()
      },
      '/get_model_info': ({ json }) =>
        json({ model_path: 'test/model', weight_version: options.version?.() ?? 'default' }),
      '/server_info': ({ json }) => json({ context_length: 4096, version: '0.5' }),
    },
    tooLong: {
      error: {
        message: "The input (9000 tokens) is longer than the model's context length (4096 tokens).",
      },
    },
  })
}

function generate(turn: Turn, options: SglangServerOptions, running: Map<string, Running>): void {
  const { body } = turn
  if (Array.isArray(body.input_ids[0])) {
    const answers = body.input_ids.map((prompt: number[], index: number) => {
      const parameters = body.sampling_params[index]
      const answer = answerOf(turn, prompt, { ...options, parameters, offset: index })
      return whole(answer, prompt, { turn, options, rid: body.rid[index] })
    })
    turn.json(answers)
    return
  }
  const prompt: number[] = body.input_ids
  const answer = answerOf(turn, prompt, { ...options, parameters: body.sampling_params, offset: 0 })
  const context = { turn, options, rid: body.rid ?? 'none' }
  if (body.stream) stream(answer, prompt, { ...context, running })
  else respond(answer, prompt, { ...context, running })
}

/** What this server reads of a client's sampling parameters. */
interface Parameters {
  readonly max_new_tokens?: number
  readonly sampling_seed?: number
}

function answerOf(
  turn: Turn,
  prompt: readonly number[],
  options: SglangServerOptions & { parameters: Parameters; offset: number },
): Answer {
  const { parameters, offset } = options
  const asked = {
    prompt,
    // The server's own default.
    maxTokens: parameters.max_new_tokens ?? 128,
    index: turn.index + offset,
    seed: parameters.sampling_seed,
  }
  return answerTo(asked, turn.fault, options)
}

interface Context {
  readonly turn: Turn
  readonly options: SglangServerOptions
  readonly rid: string
  readonly running?: Map<string, Running>
}

function respond(answer: Answer, prompt: readonly number[], context: Context): void {
  const { turn, options, rid, running } = context
  const start = performance.now()
  const pace = options.pace ?? 0
  const { hold } = turn
  if (pace === 0 && !hold) {
    turn.json(whole(answer, prompt, context))
    return
  }
  const end = (count: number, isAborted: boolean): void => {
    clearTimeout(timer)
    running?.delete(rid)
    turn.json(whole(first(answer, count), prompt, context, isAborted))
  }
  let timer: NodeJS.Timeout | undefined
  if (hold) {
    running?.set(rid, { stop: () => end(hold.after, true) })
    hold.onReached()
    return
  }
  timer = setTimeout(() => end(answer.ids.length, false), answer.ids.length * pace)
  running?.set(rid, {
    stop: () => end(Math.floor((performance.now() - start) / pace), true),
  })
}

function first(answer: Answer, count: number): Answer {
  return { ...answer, ids: answer.ids.slice(0, count), logprobs: answer.logprobs.slice(0, count) }
}

function stream(answer: Answer, prompt: readonly number[], context: Context): void {
  const { turn, options, rid, running } = context
  let count = 0
  const streaming = streamEvents(turn, options.pace ?? 0, () => {
    if (count === answer.ids.length) {
      running?.delete(rid)
      return undefined
    }
    count++
    const isLast = count === answer.ids.length
    const part = whole(first(answer, count), prompt, context)
    const meta = {
      ...part.meta_info,
      finish_reason: isLast ? part.meta_info.finish_reason : null,
      completion_tokens: count,
    }
    if (!options.incremental) return { ...part, meta_info: meta }
    const pairs = meta.output_token_logprobs.slice(count - 1, count)
    const top = meta.output_top_logprobs?.slice(-1)
    return {
      ...part,
      output_ids: answer.ids.slice(count - 1, count),
      meta_info: {
        ...meta,
        output_token_logprobs: pairs,
        ...(top ? { output_top_logprobs: top } : {}),
      },
    }
  })
  running?.set(rid, streaming)
}

function whole(answer: Answer, prompt: readonly number[], context: Context, isAborted = false) {
  const { turn, options, rid } = context
  const { ids, logprobs } = answer
  const finish = isAborted
    ? { type: 'abort', message: 'Abort in decode', status_code: null, err_type: null }
    : answer.finish === 'stop'
      ? { type: 'stop', matched: ids.at(-1) }
      : { type: 'length', length: ids.length }
  const width: number = turn.body.top_logprobs_num ?? 0
  const startLength: number = turn.body.logprob_start_len ?? -1
  return {
    text: 'the text is not looked at',
    ...(options.withoutOutputIds ? {} : { output_ids: ids }),
    meta_info: {
      id: rid,
      finish_reason: finish,
      prompt_tokens: prompt.length,
      completion_tokens: ids.length,
      cached_tokens: Math.max(0, prompt.length - 1),
      weight_version: options.version?.() ?? 'default',
      output_token_logprobs: logprobs.map((logprob, index) => [logprob, ids[index], null]),
      ...(width > 0 ? { output_top_logprobs: ids.map(id => candidates(id, width)) } : {}),
      ...(startLength >= 0 ? { input_token_logprobs: inputPairs(prompt, startLength) } : {}),
    },
  }
}

function candidates(id: number, width: number): readonly (readonly [number, number, null])[] {
  return Array.from({ length: width }, (_, rank) => [-0.5 - rank, id + rank, null])
}

function inputPairs(prompt: readonly number[], start: number): readonly unknown[] {
  return prompt.slice(start).map((id, index) => [index === 0 ? null : -id / 1024, id, null])
}

/** A policy before an SGLang server that plays the scene. */
export function openSglangStage(
  scene: PolicyScene,
  connect: (url: string, options: SglangOptions) => Policy,
  options: SglangServerOptions = {},
): Promise<StagedPolicy> {
  // Only a hanging sample uses its grace up.
  const graceSeconds = scene.fault === 'hang' ? 0.3 : 30
  return openStage(scene, {
    serve: played => openSglangServer({ ...played, ...options }),
    connect: (url, given) => connect(url, { graceSeconds, ...given }),
    path: '/generate',
    stated: ({ input_ids, sampling_params }) => ({
      prompt: input_ids,
      maxTokens: sampling_params.max_new_tokens,
      seed: sampling_params.sampling_seed,
      sampling: statedSampling(sampling_params),
    }),
  })
}
