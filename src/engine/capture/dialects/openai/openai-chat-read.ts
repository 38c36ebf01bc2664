import type { AssistantMessage, Content, Message, ToolCall, ToolDefinition } from '@espalier/text'
import type { ChatRequest, ResponseFormat, ToolChoice } from '../../contract.ts'
import { most } from '../bounds.ts'
import { imagePart, joinParts } from '../content.ts'
import type { Asked, ReadOptions } from '../dialect.ts'
import {
  defined,
  type Fields,
  fieldsIn,
  flagIn,
  join,
  listIn,
  neededTextIn,
  numberIn,
  refuse,
  refuseUnlessNeutral,
  refuseUnsupported,
  textIn,
  textsIn,
  toFields,
} from '../fields.ts'
import { chosenTool, jsonSchemaFormat, readName, readTool } from '../tools.ts'

/** Fields that change what is sampled and that token-exact sampling does not have. */
const neutral = {
  frequency_penalty: 0,
  presence_penalty: 0,
  repetition_penalty: 1,
  min_p: 0,
  logit_bias: null,
  functions: null,
  function_call: null,
  audio: null,
  prediction: null,
  web_search_options: null,
} as const

/** Reads a body of OpenAI's Chat Completions. */
export function readOpenAiChat(given: unknown, options: ReadOptions): Asked {
  const body = toFields(given, 'the body')
  refuseUnlessNeutral(body, neutral)
  const tools = readTools(body)
  const topLogprobs = numberIn(body, 'top_logprobs', { low: 0, high: 20, whole: true })
  const chat: ChatRequest = {
    messages: readMessages(body),
    tools,
    ...defined({
      toolChoice: readChoice(body.tool_choice, tools),
      parallelCalls: flagIn(body, 'parallel_tool_calls'),
      maxTokens:
        numberIn(body, 'max_completion_tokens', { low: 1, high: most.tokens, whole: true }) ??
        numberIn(body, 'max_tokens', { low: 1, high: most.tokens, whole: true }),
      stop: textsIn(body, 'stop'),
      count: numberIn(body, 'n', { low: 1, high: most.answers, whole: true }),
      topLogprobs,
      responseFormat: readFormat(body),
      ...readSampling(body),
    }),
  }
  return {
    chat,
    model: textIn(body, 'model') ?? options.model ?? 'default',
    stream: flagIn(body, 'stream') ?? false,
    body,
    wants: {
      logprobs: (flagIn(body, 'logprobs') ?? false) || (topLogprobs ?? 0) > 0,
      tokenIds: flagIn(body, 'return_token_ids') ?? false,
      usage: flagIn(fieldsIn(body, 'stream_options') ?? {}, 'include_usage') ?? false,
    },
  }
}

/** The sampling fields that OpenAI's dialects share, and the one that its servers add. */
export function readSampling(body: Fields) {
  const topK = numberIn(body, 'top_k', { low: -1, high: most.tokens, whole: true })
  return {
    temperature: numberIn(body, 'temperature', { low: 0, high: 100 }),
    topP: numberIn(body, 'top_p', { low: Number.MIN_VALUE, high: 1 }),
    topK: topK === undefined ? undefined : Math.max(0, topK),
    seed: numberIn(body, 'seed', { low: Number.MIN_SAFE_INTEGER, whole: true }),
  }
}

function readMessages(body: Fields): readonly Message[] {
  const list = listIn(body, 'messages', { most: most.messages }) ?? []
  if (list.length === 0) refuse('messages', 'is missing or empty')
  const messages = list.map((each, index) => {
    const at = `messages[${index}]`
    return readMessage(toFields(each, at), at)
  })
  if (messages.at(-1)!.role !== 'assistant') return messages
  return refuseUnsupported(
    `messages[${messages.length - 1}]`,
    'is of the assistant: an answer cannot be begun for the policy; end with another message',
  )
}

function readMessage(fields: Fields, at: string): Message {
  const { role } = fields
  switch (role) {
    case 'system':
    case 'developer':
    case 'user':
      return { role, content: readContent(fields, at) }
    case 'tool': {
      const name = textIn(fields, 'name', at)
      return {
        role,
        content: readContent(fields, at),
        tool_call_id: neededTextIn(fields, 'tool_call_id', at),
        ...(name !== undefined && { name }),
      }
    }
    case 'assistant':
      return readAssistant(fields, at)
    default:
      return refuse(join(at, 'role'), 'must be one of system, developer, user, assistant, tool')
  }
}

function readAssistant(fields: Fields, at: string): AssistantMessage {
  const calls = listIn(fields, 'tool_calls', { most: most.calls, at }) ?? []
  const reasoning = textIn(fields, 'reasoning_content', at) ?? textIn(fields, 'reasoning', at)
  const refusal = textIn(fields, 'refusal', at)
  const content =
    fields.content === undefined || fields.content === null
      ? (refusal ?? null)
      : readContent(fields, at)
  if (content === null && calls.length === 0 && reasoning === undefined) {
    refuse(join(at, 'content'), 'is missing, and there are no tool_calls')
  }
  return {
    role: 'assistant',
    content,
    ...(reasoning !== undefined && { reasoning_content: reasoning }),
    ...(calls.length > 0 && {
      tool_calls: calls.map((call, index) => readCall(call, `${at}.tool_calls[${index}]`)),
    }),
  }
}

function readCall(value: unknown, at: string): ToolCall {
  const fields = toFields(value, at)
  const called = fieldsIn(fields, 'function', at)
  if (!called) return refuseUnsupported(at, 'is no call of a function')
  const place = join(at, 'function')
  return {
    id: neededTextIn(fields, 'id', at),
    type: 'function',
    function: {
      name: readName(called, place),
      arguments: textIn(called, 'arguments', place) ?? '',
    },
  }
}

function readContent(fields: Fields, at: string): Content {
  const { content } = fields
  if (typeof content === 'string') return content
  const place = join(at, 'content')
  const parts = listIn(fields, 'content', { most: most.parts, at })
  if (!parts) return refuse(place, 'is missing')
  const between = fields.role === 'assistant' ? '' : '\n'
  return joinParts(
    parts.map((part, index) => readPart(part, `${place}[${index}]`)),
    between,
  )
}

function readPart(value: unknown, at: string) {
  const fields = toFields(value, at)
  switch (fields.type) {
    case 'text':
      return { type: 'text', text: neededTextIn(fields, 'text', at) } as const
    case 'refusal':
      return { type: 'text', text: neededTextIn(fields, 'refusal', at) } as const
    case 'image_url': {
      const place = join(at, 'image_url')
      return imagePart(neededTextIn(toFields(fields.image_url, place), 'url', place))
    }
    default:
      return refuseUnsupported(
        join(at, 'type'),
        `is ${JSON.stringify(fields.type)?.slice(0, 80)}; text and image_url are taken`,
      )
  }
}

function readTools(body: Fields): readonly ToolDefinition[] {
  const list = listIn(body, 'tools', { most: most.tools }) ?? []
  return list.map((each, index) => {
    const at = `tools[${index}]`
    const fields = toFields(each, at)
    const declared = fieldsIn(fields, 'function', at)
    if (fields.type === 'function' && declared) {
      return readTool(declared, `${at}.function`, 'parameters')
    }
    return refuseUnsupported(at, 'is no function: only function tools are taken')
  })
}

function readChoice(value: unknown, tools: readonly ToolDefinition[]): ToolChoice | undefined {
  if (value === undefined || value === null) return undefined
  if (value === 'auto' || value === 'none' || value === 'required') return value
  const fields = toFields(value, 'tool_choice')
  if (fields.type !== 'function') {
    return refuseUnsupported('tool_choice', 'must be auto, none, required or name one function')
  }
  const called = fieldsIn(fields, 'function', 'tool_choice') ?? fields
  return chosenTool(neededTextIn(called, 'name', 'tool_choice'), tools, 'tool_choice')
}

function readFormat(body: Fields): ResponseFormat | undefined {
  const format = fieldsIn(body, 'response_format')
  if (!format || format.type === 'text') return undefined
  if (format.type === 'json_object') return { kind: 'json' }
  const at = 'response_format.json_schema'
  if (format.type !== 'json_schema') {
    return refuse('response_format.type', 'must be text, json_object or json_schema')
  }
  const declared = toFields(format.json_schema, at)
  return jsonSchemaFormat(declared.schema, `${at}.schema`)
}
