import type { AssistantMessage, ToolCall } from '@espalier/text'
import type { Finish } from '../../../base/core/policy.ts'
import {
  asArray,
  asCount,
  asIds,
  asObject,
  asText,
  type Fields,
  isLogprob,
  shown,
  wrong,
  wrongLogprob,
} from '../transport/reading.ts'

/** What a chat server answered, checked. */
export interface ChatAnswer {
  readonly message: AssistantMessage
  readonly finish: Finish
  /** Exact tokens, if the server gives them and read exactly the prompt that was meant. */
  readonly tokens: { readonly ids: Int32Array; readonly logprobs: Float32Array | null } | undefined
  readonly promptTokens: number
  readonly sampledTokens: number
  readonly cachedTokens: number | undefined
  readonly weights: unknown
}

/** Reads an answer of `/chat/completions`; `prompt` is the path that should have been continued. */
export function readChatAnswer(answer: unknown, where: string, prompt: Int32Array): ChatAnswer {
  const fields = asObject(answer, where, 'the answer')
  const choice = asObject(asArray(fields.choices, where, 'choices')[0], where, 'choices[0]')
  const usage = asObject(fields.usage ?? {}, where, 'usage')
  const details = asObject(usage.prompt_tokens_details ?? {}, where, 'usage.prompt_tokens_details')
  return {
    message: readMessage(choice.message, where),
    finish: readFinish(choice.finish_reason, where),
    tokens: readTokens(fields, choice, { where, prompt }),
    promptTokens: asCount(usage.prompt_tokens, where, 'usage.prompt_tokens') ?? 0,
    sampledTokens: asCount(usage.completion_tokens, where, 'usage.completion_tokens') ?? 0,
    cachedTokens: asCount(
      details.cached_tokens,
      where,
      'usage.prompt_tokens_details.cached_tokens',
    ),
    weights: (fields.metadata as Fields | null | undefined)?.weight_version,
  }
}

function readMessage(value: unknown, where: string): AssistantMessage {
  const message = asObject(value, where, 'choices[0].message')
  const content = message.content ?? null
  if (content !== null) asText(content, where, 'choices[0].message.content')
  const reasoning = message.reasoning_content ?? message.reasoning ?? undefined
  const calls = asArray(message.tool_calls ?? [], where, 'choices[0].message.tool_calls')
  return {
    role: 'assistant',
    content: content as string | null,
    ...(reasoning === undefined
      ? {}
      : { reasoning_content: asText(reasoning, where, 'choices[0].message.reasoning_content') }),
    ...(calls.length === 0
      ? {}
      : { tool_calls: calls.map((call, index) => readCall(call, where, index)) }),
  }
}

function readCall(value: unknown, where: string, index: number): ToolCall {
  const path = `choices[0].message.tool_calls[${index}]`
  const call = asObject(value, where, path)
  const target = asObject(call.function, where, `${path}.function`)
  return {
    id: typeof call.id === 'string' && call.id ? call.id : `call_${index}`,
    type: 'function',
    function: {
      name: asText(target.name, where, `${path}.function.name`),
      arguments: asText(target.arguments ?? '', where, `${path}.function.arguments`),
    },
  }
}

function readFinish(reason: unknown, where: string): Finish {
  if (reason === 'stop' || reason === 'tool_calls' || reason === 'function_call') {
    return { kind: 'stop' }
  }
  if (reason === 'length' || reason === 'abort') return { kind: reason }
  throw wrong(where, `finish_reason must be stop, length or tool_calls, got ${shown(reason)}`)
}

interface Expected {
  readonly where: string
  readonly prompt: Int32Array
}

/**
 * vLLM and SGLang give ids when asked to. They continue our path only if the prompt that the
 * server rendered is that path, so without its ids, or with other ones, the answer is text.
 */
function readTokens(answer: Fields, choice: Fields, expected: Expected): ChatAnswer['tokens'] {
  const { where, prompt } = expected
  const given = choice.token_ids ?? choice.response_token_ids
  const seen = choice.prompt_token_ids ?? answer.prompt_token_ids
  if (!given || !seen) return undefined
  const ids = asIds(given, where, 'token_ids')
  const read = asIds(seen, where, 'prompt_token_ids')
  if (read.length !== prompt.length || read.some((id, index) => id !== prompt[index])) {
    return undefined
  }
  return { ids, logprobs: readLogprobs(choice.logprobs, ids.length, where) }
}

function readLogprobs(value: unknown, count: number, where: string): Float32Array | null {
  if (value === undefined || value === null) return null
  const content = asArray(asObject(value, where, 'logprobs').content, where, 'logprobs.content')
  if (content.length !== count) {
    throw wrong(where, `token_ids has ${count} ids but logprobs.content has ${content.length}`)
  }
  return Float32Array.from(content, (entry, index) => {
    const { logprob } = asObject(entry, where, `logprobs.content[${index}]`)
    if (!isLogprob(logprob)) throw wrongLogprob(where, `logprobs.content[${index}]`, logprob)
    return logprob
  })
}
