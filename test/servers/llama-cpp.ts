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

/** How the llama.cpp server behaves. */
export interface LlamaCppServerOptions extends ServingOptions {
  /** Places of tokens that end inside a character: only their ids are sent. */
  readonly split?: readonly number[]
}

/** Opens a server that speaks llama.cpp's `/completion`. */
export function openLlamaCppServer(options: LlamaCppServerOptions = {}): Promise<Serving> {
  return openServing(options, {
    generations: { '/completion': turn => complete(turn, options) },
    others: {
      '/props': ({ json }) =>
        json({ model_path: 'model.gguf', default_generation_settings: { n_ctx: 4096 } }),
    },
    tooLong: {
      error: {
        code: 400,
        message:
          'request (5000 tokens) exceeds the available context size (4096 tokens), try increasing it',
        type: 'exceed_context_size_error',
      },
    },
  })
}

function complete(turn: Turn, options: LlamaCppServerOptions): void {
  const { body } = turn
  const asked = {
    prompt: body.prompt,
    maxTokens: body.n_predict ?? -1,
    index: turn.index,
    seed: body.seed,
  }
  const answer = answerTo(asked, turn.fault, options)
  if (body.stream) {
    stream(turn, answer, options)
    return
  }
  paced(turn, answer.ids.length * (options.pace ?? 0), () =>
    turn.json({
      ...end(answer, body.prompt.length),
      tokens: body.return_tokens ? answer.ids : [],
      completion_probabilities: entries(answer, body, options),
    }),
  )
}

function end({ ids, finish }: Answer, prompt: number) {
  return {
    content: '',
    tokens: [],
    stop: true,
    stop_type: finish === 'stop' ? 'eos' : 'limit',
    stopping_word: '',
    truncated: false,
    tokens_predicted: ids.length,
    tokens_evaluated: prompt,
    timings: { cache_n: 2 },
  }
}

function stream(turn: Turn, answer: Answer, options: LlamaCppServerOptions): void {
  const { body } = turn
  const all = entries(answer, body, { ...options, split: [] })
  let count = 0
  streamEvents(turn, options.pace ?? 0, () => {
    while (options.split?.includes(count)) count++
    if (count > answer.ids.length) return undefined
    const at = count++
    if (at === answer.ids.length) return end(answer, body.prompt.length)
    return {
      content: '',
      tokens: [answer.ids[at]],
      stop: false,
      tokens_predicted: count,
      ...(all[at] ? { completion_probabilities: [all[at]] } : {}),
    }
  })
}

/** What a client says of the probabilities it wants. */
interface Probabilities {
  readonly n_probs: number
  readonly post_sampling_probs?: boolean
}

function entries(
  { ids, logprobs }: Answer,
  body: Probabilities,
  { split = [] }: LlamaCppServerOptions,
) {
  const isAfter = body.post_sampling_probs === true
  return logprobs
    .map((logprob, index) => ({
      id: ids[index],
      token: 'x',
      bytes: split.includes(index - 1) ? [240, 159, 141, 144] : [120],
      ...(isAfter ? { prob: after(logprob) } : { logprob }),
      [isAfter ? 'top_probs' : 'top_logprobs']: Array.from({ length: body.n_probs }, (_, rank) => ({
        id: ids[index]! + rank,
        ...(isAfter ? { prob: 0.5 ** (rank + 1) } : { logprob: -1 - rank }),
      })),
    }))
    .filter((_, index) => !split.includes(index))
}

/** Numbers go over the wire as probabilities; broken ones stay broken. */
function after(logprob: unknown): unknown {
  return typeof logprob === 'number' ? Math.exp(logprob) : logprob
}
