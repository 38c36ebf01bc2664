import { textOf } from '@espalier/text'
import type { ChatAnswer } from '../../contract.ts'
import type { Asked, WriteOptions } from '../dialect.ts'
import { unmetField } from '../unmet.ts'
import { writeLogprobs } from './openai-chat-write.ts'
import type { ResponseItem } from './response-memory.ts'

/** The body of a response; what it says is remembered, so that later requests can refer to it. */
export function writeOpenAiResponse(
  asked: Asked,
  answers: readonly ChatAnswer[],
  options: WriteOptions,
): unknown {
  const answer = answers[0]!
  return finishedResponse(asked, answer, { ...options, output: outputOf(asked, answer, options) })
}

/** A response that has ended. */
export function finishedResponse(
  asked: Asked,
  answer: ChatAnswer,
  options: WriteOptions & { readonly output: readonly ResponseItem[] },
): object {
  const { output, id, memory } = options
  memory?.keep(`resp_${id}`, asked.items ?? [], output)
  const isCut = answer.finish === 'length'
  return {
    ...responseHead(asked, options),
    status: isCut ? 'incomplete' : 'completed',
    incomplete_details: isCut ? { reason: 'max_output_tokens' } : null,
    output,
    usage: writeUsage(answer),
    ...unmetField(answer),
    ...(asked.wants.tokenIds && {
      prompt_token_ids: [...answer.tokens.prompt],
      token_ids: [...answer.tokens.sampled],
    }),
  }
}

/** What a response says of itself before anything was answered. */
export function responseHead({ body, model, chat }: Asked, options: WriteOptions): object {
  const repeated = (name: string, otherwise: unknown): unknown => body[name] ?? otherwise
  return {
    id: `resp_${options.id}`,
    object: 'response',
    created_at: options.created,
    status: 'in_progress',
    background: false,
    error: null,
    incomplete_details: null,
    instructions: repeated('instructions', null),
    max_output_tokens: chat.maxTokens ?? null,
    model,
    output: [],
    parallel_tool_calls: chat.parallelCalls ?? true,
    previous_response_id: repeated('previous_response_id', null),
    reasoning: repeated('reasoning', { effort: null, summary: null }),
    store: repeated('store', true),
    temperature: chat.temperature ?? 1,
    text: repeated('text', { format: { type: 'text' } }),
    tool_choice: repeated('tool_choice', 'auto'),
    tools: repeated('tools', []),
    top_p: chat.topP ?? 1,
    truncation: 'disabled',
    usage: null,
    user: repeated('user', null),
    metadata: repeated('metadata', {}),
  }
}

function writeUsage({ usage }: ChatAnswer): object {
  return {
    input_tokens: usage.prompt,
    input_tokens_details: { cached_tokens: usage.cached ?? 0 },
    output_tokens: usage.sampled,
    output_tokens_details: { reasoning_tokens: usage.reasoning ?? 0 },
    total_tokens: usage.prompt + usage.sampled,
  }
}

/** The items of an answer: reasoning, words, calls. */
function outputOf(asked: Asked, answer: ChatAnswer, options: WriteOptions): ResponseItem[] {
  const { id } = options
  const { content, reasoning_content: reasoning, tool_calls: calls = [] } = answer.message
  const words = textOf(content)
  const items: ResponseItem[] = []
  const next = (prefix: string): string => `${prefix}_${id}_${items.length}`
  if (reasoning !== undefined) items.push(reasoningItem(next('rs'), reasoning))
  if (words !== '' || calls.length === 0) {
    const logprobs = asked.wants.logprobs ? logprobsOf(answer, options) : []
    items.push(messageItem(next('msg'), words, logprobs))
  }
  for (const call of calls) {
    const { name, arguments: given } = call.function
    items.push(callItem(next('fc'), { id: call.id, name, arguments: given }))
  }
  return items
}

/** The log-probabilities of an answer's tokens as Responses carries them. */
export function logprobsOf(answer: ChatAnswer, options: WriteOptions): readonly unknown[] {
  const { content } = writeLogprobs(answer, options)
  return content ?? []
}

/** Reasoning as an item: clients show its summary. */
export function reasoningItem(id: string, text: string): ResponseItem {
  return { id, type: 'reasoning', summary: text === '' ? [] : [{ type: 'summary_text', text }] }
}

/** Words as an item. */
export function messageItem(
  id: string,
  text: string,
  logprobs: readonly unknown[] = [],
): ResponseItem {
  return {
    id,
    type: 'message',
    status: 'completed',
    role: 'assistant',
    content: [textPart(text, logprobs)],
  }
}

/** Words as a part of a message. */
export function textPart(text: string, logprobs: readonly unknown[] = []): object {
  return { type: 'output_text', text, annotations: [], logprobs }
}

/** A call as an item. */
export function callItem(
  id: string,
  call: { readonly id: string; readonly name: string; readonly arguments: string },
): ResponseItem {
  const { name, arguments: given } = call
  return {
    id,
    type: 'function_call',
    status: 'completed',
    call_id: call.id,
    name,
    arguments: given,
  }
}
