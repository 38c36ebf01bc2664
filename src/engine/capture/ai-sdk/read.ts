import type { Content, ContentPart, Message, ToolCall, ToolDefinition } from '@espalier/text'
import type { ChatRequest, ToolChoice } from '../contract.ts'
import { imageUrl, joinParts } from '../dialects/content.ts'
import type { ModelCall, OfferedTool, PromptMessage, PromptPart } from './types.ts'

/** What the AI SDK asks, as a request. */
export function readCall(call: ModelCall): ChatRequest {
  const { maxOutputTokens, temperature, topP, topK, seed, stopSequences } = call
  return {
    messages: call.prompt.flatMap(readMessage),
    tools: (call.tools ?? []).map(readTool),
    ...(call.toolChoice && { toolChoice: readChoice(call.toolChoice) }),
    ...(call.responseFormat?.type === 'json' && {
      responseFormat: {
        kind: 'json',
        ...(isObject(call.responseFormat.schema) && { schema: call.responseFormat.schema }),
      },
    }),
    ...(maxOutputTokens !== undefined && { maxTokens: maxOutputTokens }),
    ...(temperature !== undefined && { temperature }),
    ...(topP !== undefined && { topP }),
    ...(topK !== undefined && { topK }),
    ...(seed !== undefined && { seed }),
    ...(stopSequences && { stop: stopSequences }),
  }
}

function readTool({ type, name, description, inputSchema }: OfferedTool): ToolDefinition {
  if (type !== 'function') {
    throw new TypeError(
      `Tool "${name}" is run by a provider (${type}); a policy here can only call functions.`,
    )
  }
  return {
    type: 'function',
    function: {
      name,
      ...(description !== undefined && { description }),
      parameters: isObject(inputSchema) ? inputSchema : { type: 'object', properties: {} },
    },
  }
}

function readChoice({ type, toolName }: NonNullable<ModelCall['toolChoice']>): ToolChoice {
  if (type === 'tool' && toolName !== undefined) return { tool: toolName }
  return type === 'none' || type === 'required' ? type : 'auto'
}

function readMessage({ role, content }: PromptMessage): readonly Message[] {
  if (role === 'system') return [{ role, content: typeof content === 'string' ? content : '' }]
  const parts = typeof content === 'string' ? [{ type: 'text', text: content }] : content
  if (role === 'user') return [{ role, content: readContent(parts) }]
  const results = parts.filter(({ type }) => type === 'tool-result').map(readResult)
  return role === 'tool' ? results : [readAnswer(parts), ...results]
}

function readContent(parts: readonly PromptPart[]): Content {
  return joinParts(parts.map(readContentPart), '')
}

/** A text or an image; which types images have depends on the version, and on whether a tool gave them. */
function readContentPart(part: PromptPart): ContentPart {
  const { type, text = '', mediaType = type === 'image-url' ? 'image/*' : '' } = part
  if (type === 'text') return { type, text }
  const isImage = mediaType.startsWith('image/')
  const url = isImage ? imageUrl(part.data ?? part.url, mediaType) : undefined
  if (url !== undefined) return { type: 'image_url', image_url: { url } }
  throw new TypeError(
    `A prompt has a part of type ${type} ${mediaType}: only text and images are read.`,
  )
}

function readAnswer(parts: readonly PromptPart[]): Message {
  const textOfType = (wanted: string): string =>
    parts.map(({ type, text = '' }) => (type === wanted ? text : '')).join('')
  const reasoning = textOfType('reasoning')
  const calls = parts.filter(({ type }) => type === 'tool-call').map(readToolCall)
  return {
    role: 'assistant',
    content: textOfType('text'),
    ...(reasoning !== '' && { reasoning_content: reasoning }),
    ...(calls.length > 0 && { tool_calls: calls }),
  }
}

function readToolCall({ toolCallId = '', toolName = '', input }: PromptPart): ToolCall {
  const text = typeof input === 'string' ? input : JSON.stringify(input ?? {})
  return { id: toolCallId, type: 'function', function: { name: toolName, arguments: text } }
}

function readResult({ toolCallId = '', toolName, output }: PromptPart): Message {
  return {
    role: 'tool',
    tool_call_id: toolCallId,
    content: output ? readOutput(output) : '',
    ...(toolName !== undefined && { name: toolName }),
  }
}

function readOutput({ type, value, reason }: NonNullable<PromptPart['output']>): Content {
  if (type === 'execution-denied') return reason ?? 'The call was denied.'
  if (type === 'content' && Array.isArray(value)) return readContent(value as PromptPart[])
  return typeof value === 'string' ? value : JSON.stringify(value ?? null)
}

function isObject(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}
