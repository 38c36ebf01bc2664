import {
  answerTo,
  openServing,
  paced,
  type Serving,
  type ServingOptions,
  type Turn,
} from './serving.ts'

/** How the chat server behaves. */
export interface OpenAiChatServerOptions extends ServingOptions {
  /** Refuses what OpenAI's own API does not know. @default false */
  readonly isStrict?: boolean
  /** Gives token ids: what this says the messages were rendered to. */
  readonly render?: (body: unknown) => readonly number[]
  readonly toolCalls?: readonly object[]
}

/** Opens a server that speaks OpenAI's chat completions. */
export function openOpenAiChatServer(options: OpenAiChatServerOptions = {}): Promise<Serving> {
  return openServing(options, {
    generations: { '/v1/chat/completions': turn => complete(turn, options) },
    others: { '/v1/models': ({ json }) => json({ data: [{ id: 'served' }] }) },
    tooLong: {
      error: {
        message:
          "This model's maximum context length is 4096 tokens. However, your messages resulted in 5000 tokens.",
        type: 'invalid_request_error',
        code: 'context_length_exceeded',
      },
    },
  })
}

const unknown = ['top_k', 'min_p', 'repetition_penalty', 'return_token_ids', 'max_tokens']

function refuse({ body, response }: Turn): boolean {
  const name = unknown.find(each => body[each] !== undefined)
  if (name === undefined) return false
  const message =
    name === 'max_tokens'
      ? "Unsupported parameter: 'max_tokens'. Use 'max_completion_tokens' instead."
      : `Unrecognized request argument supplied: ${name}`
  response.statusCode = 400
  response.setHeader('content-type', 'application/json')
  response.end(JSON.stringify({ error: { message, type: 'invalid_request_error' } }))
  return true
}

function complete(turn: Turn, options: OpenAiChatServerOptions): void {
  const { body } = turn
  if (options.isStrict && refuse(turn)) return
  const prompt = options.render?.(body) ?? []
  const maxTokens = body.max_tokens ?? body.max_completion_tokens ?? 16
  const asked = { prompt, maxTokens, index: turn.index, seed: body.seed }
  const answer = answerTo(asked, turn.fault, options)
  const calls = options.toolCalls
  const ids = body.return_token_ids && options.render
  paced(turn, answer.ids.length * (options.pace ?? 0), () =>
    turn.json({
      id: 'chatcmpl',
      model: 'served',
      choices: [
        {
          index: 0,
          message: {
            role: 'assistant',
            content: calls ? null : (answer.text ?? ''),
            ...(calls ? { tool_calls: calls } : {}),
          },
          finish_reason: calls ? 'tool_calls' : answer.finish,
          ...(ids ? { token_ids: answer.ids } : {}),
          ...(ids ? { logprobs: { content: entries(answer) } } : {}),
        },
      ],
      ...(ids ? { prompt_token_ids: prompt } : {}),
      usage: { prompt_tokens: 9, completion_tokens: answer.ids.length },
    }),
  )
}

function entries({ ids, logprobs }: { ids: readonly number[]; logprobs: readonly number[] }) {
  return logprobs.map((logprob, index) => ({ token: `token_id:${ids[index]}`, logprob }))
}
