import type { ChatAnswer, ChatDelta, ChatFinish } from '../../contract.ts'
import type { Asked, StreamWriter, WriteOptions } from '../dialect.ts'
import { plainEvent } from '../events.ts'
import { unmetField } from '../unmet.ts'
import { openAiError } from './openai-problem.ts'

const finishes: Readonly<Record<ChatFinish, string>> = {
  stop: 'stop',
  length: 'length',
  'tool-calls': 'tool_calls',
  aborted: 'stop',
}

/** The body of a chat completion. */
export function writeOpenAiChat(
  asked: Asked,
  answers: readonly ChatAnswer[],
  options: WriteOptions,
): unknown {
  const { wants } = asked
  return {
    id: `chatcmpl-${options.id}`,
    object: 'chat.completion',
    created: options.created,
    model: asked.model,
    choices: answers.map((answer, index) => ({
      index,
      message: writeMessage(answer),
      finish_reason: finishes[answer.finish],
      logprobs: wants.logprobs ? writeLogprobs(answer, options) : null,
      ...unmetField(answer),
      ...(wants.tokenIds && idsOf(answer)),
    })),
    usage: writeUsage(answers),
    ...(wants.tokenIds && tokensOf(answers[0]!)),
  }
}

/** Extra fields for token-level clients: the prompt's ids and the weights' version. */
function tokensOf({ tokens }: ChatAnswer): object {
  return {
    prompt_token_ids: [...tokens.prompt],
    metadata: { weight_version: String(tokens.version) },
  }
}

/** The ids of an answer, under the names that vLLM and SGLang give them. */
function idsOf({ tokens }: ChatAnswer): object {
  const sampled = [...tokens.sampled]
  return {
    token_ids: sampled,
    response_token_ids: sampled,
    prompt_token_ids: [...tokens.prompt],
  }
}

function writeMessage({ message }: ChatAnswer): object {
  const { content, reasoning_content: reasoning, tool_calls: calls } = message
  return {
    role: 'assistant',
    content: content === '' && calls ? null : content,
    refusal: null,
    ...(reasoning !== undefined && { reasoning_content: reasoning }),
    ...(calls && { tool_calls: calls }),
  }
}

/** Log-probabilities of the sampled tokens; a token is named by its text, or by its id. */
export function writeLogprobs({ tokens }: ChatAnswer, { decode }: WriteOptions) {
  const { sampled, logprobs, candidates } = tokens
  const write = (id: number, logprob: number | null) => {
    const token = decode ? decode(id) : `token_id:${id}`
    return { token, logprob, bytes: decode ? [...Buffer.from(token)] : null }
  }
  const content = [...sampled].map((id, index) => ({
    ...write(id, logprobs?.[index] ?? null),
    top_logprobs: (candidates?.[index] ?? []).map(each => write(each.id, each.logprob)),
  }))
  return { content: logprobs ? content : null, refusal: null }
}

function writeUsage(answers: readonly ChatAnswer[]): object {
  const prompt = answers[0]?.usage.prompt ?? 0
  const sampled = answers.reduce((sum, { usage }) => sum + usage.sampled, 0)
  const reasoning = answers.reduce((sum, { usage }) => sum + (usage.reasoning ?? 0), 0)
  return {
    prompt_tokens: prompt,
    completion_tokens: sampled,
    total_tokens: prompt + sampled,
    prompt_tokens_details: { cached_tokens: answers[0]?.usage.cached ?? 0 },
    completion_tokens_details: { reasoning_tokens: reasoning },
  }
}

/** The chunks of a streamed chat completion. */
export function streamOpenAiChat(asked: Asked, options: WriteOptions): StreamWriter {
  const { chat, model, wants } = asked
  const { id, created } = options
  const head = { id: `chatcmpl-${id}`, object: 'chat.completion.chunk', created }
  const chunk = (choices: readonly object[], more: object = {}): string =>
    plainEvent({ ...head, model, choices, ...more })
  const choice = (index: number, delta: object, more: object = {}): string =>
    chunk([{ index, delta, finish_reason: null, ...more }])
  const reasoning = openReasoning(choice)
  return {
    begin: () =>
      Array.from({ length: chat.count ?? 1 }, (_, index) =>
        choice(index, { role: 'assistant', content: '' }),
      ).join(''),
    delta: delta =>
      delta.kind === 'reasoning'
        ? reasoning.hold(delta)
        : reasoning.release(delta.answer) + choice(delta.answer, writeDelta(delta)),
    end(answers) {
      const ends = answers.map((answer, index) => {
        const more = {
          finish_reason: finishes[answer.finish],
          ...unmetField(answer),
          ...(wants.logprobs && { logprobs: writeLogprobs(answer, options) }),
          ...(wants.tokenIds && {
            token_ids: [...answer.tokens.sampled],
            prompt_token_ids: [...answer.tokens.prompt],
          }),
        }
        return reasoning.release(index) + choice(index, {}, more)
      })
      const usage = wants.usage ? chunk([], { usage: writeUsage(answers) }) : ''
      return `${ends.join('')}${usage}data: [DONE]\n\n`
    },
    fail: problem => plainEvent({ error: openAiError(problem) }),
  }
}

/**
 * Holds reasoning back until something else is said, so that it is sent as one delta: OpenAI's own
 * client joins the deltas of fields it knows and keeps the last one of others, so that a
 * conversation would come back with the end of its reasoning alone.
 */
function openReasoning(choice: (index: number, delta: object) => string) {
  const held = new Map<number, string>()
  return {
    hold({ answer, text }: Extract<ChatDelta, { kind: 'reasoning' }>): string {
      held.set(answer, (held.get(answer) ?? '') + text)
      return ''
    },
    release(answer: number): string {
      const text = held.get(answer)
      held.delete(answer)
      return text === undefined ? '' : choice(answer, { reasoning_content: text })
    },
  }
}

function writeDelta(delta: Exclude<ChatDelta, { kind: 'reasoning' }>): object {
  switch (delta.kind) {
    case 'text':
      return { content: delta.text }
    case 'call': {
      const { index, id, name } = delta
      return {
        tool_calls: [
          { index, id, type: 'function', function: { name, arguments: delta.arguments } },
        ],
      }
    }
    default:
      return delta satisfies never
  }
}
