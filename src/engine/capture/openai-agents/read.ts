import {
  type Content,
  type ContentPart,
  type Message,
  type ToolCall,
  type ToolDefinition,
  textOf,
} from '@espalier/text'
import type { ChatRequest, ToolChoice } from '../contract.ts'
import { imageUrl, joinParts } from '../dialects/content.ts'
import type { AgentsRequest, InputItem } from './types.ts'

/** What the OpenAI Agents SDK asks, as a request. */
export function readAgentsRequest(request: AgentsRequest): ChatRequest {
  const { systemInstructions, input, modelSettings: settings, outputType } = request
  const { temperature, topP, maxTokens, toolChoice, parallelToolCalls } = settings
  const said = typeof input === 'string' ? [{ role: 'user', content: input }] : input
  const schema = isRecord(outputType) && isRecord(outputType.schema) ? outputType.schema : undefined
  return {
    messages: [
      ...(systemInstructions ? [{ role: 'system' as const, content: systemInstructions }] : []),
      ...readItems(said as readonly InputItem[]),
    ],
    tools: [...request.tools.map(readTool), ...request.handoffs.map(readHandoff)],
    ...(toolChoice !== undefined && { toolChoice: readChoice(toolChoice) }),
    ...(schema && { responseFormat: { kind: 'json', schema } }),
    ...(maxTokens !== undefined && { maxTokens }),
    ...(temperature !== undefined && { temperature }),
    ...(topP !== undefined && { topP }),
    ...(parallelToolCalls !== undefined && { parallelCalls: parallelToolCalls }),
  }
}

function readChoice(choice: string): ToolChoice {
  return choice === 'auto' || choice === 'none' || choice === 'required' ? choice : { tool: choice }
}

function readTool(tool: object): ToolDefinition {
  const { type, name, description, parameters } = tool as Readonly<Record<string, unknown>>
  if (type !== 'function') {
    throw new TypeError(
      `Tool "${String(name)}" is of type ${String(type)}; a policy here can only call functions.`,
    )
  }
  return definition(String(name), description, parameters)
}

function readHandoff({
  toolName,
  toolDescription,
  inputJsonSchema,
}: AgentsRequest['handoffs'][number]): ToolDefinition {
  return definition(toolName, toolDescription, inputJsonSchema)
}

function definition(name: string, description: unknown, parameters: unknown): ToolDefinition {
  return {
    type: 'function',
    function: {
      name,
      ...(typeof description === 'string' && description !== '' && { description }),
      parameters: isRecord(parameters) ? parameters : { type: 'object', properties: {} },
    },
  }
}

/** An answer comes back in items: its reasoning, its words and its calls are one message again. */
function readItems(items: readonly InputItem[]): readonly Message[] {
  const messages: Message[] = []
  let answer: { content: string; reasoning: string; calls: ToolCall[] } | undefined
  const close = (): void => {
    if (!answer) return
    const { content, reasoning, calls } = answer
    messages.push({
      role: 'assistant',
      content,
      ...(reasoning !== '' && { reasoning_content: reasoning }),
      ...(calls.length > 0 && { tool_calls: calls }),
    })
    answer = undefined
  }
  for (const item of items) {
    const isOwn =
      item.role === 'assistant' || item.type === 'reasoning' || item.type === 'function_call'
    if (!isOwn) {
      close()
      messages.push(readGiven(item))
      continue
    }
    answer ??= { content: '', reasoning: '', calls: [] }
    if (item.role === 'assistant') answer.content += textOf(contentIn(item.content))
    else if (item.type === 'reasoning') answer.reasoning += textOf(contentIn(item.content))
    else answer.calls.push(readCall(item))
  }
  close()
  return messages
}

function readGiven({ type, role, content, callId = '', name, output }: InputItem): Message {
  if (type === 'function_call_result') {
    return {
      role: 'tool',
      tool_call_id: callId,
      content: contentIn(output),
      ...(name !== undefined && { name }),
    }
  }
  if (role === 'user' || role === 'system') return { role, content: contentIn(content) }
  throw new TypeError(`An item of type ${String(type)} cannot be shown to a policy here.`)
}

function readCall({ callId = '', name = '', arguments: text = '{}' }: InputItem): ToolCall {
  return { id: callId, type: 'function', function: { name, arguments: text } }
}

function contentIn(content: unknown): Content {
  if (typeof content === 'string') return content
  const parts: readonly unknown[] = Array.isArray(content) ? content : [content]
  return joinParts(parts.map(readPart), '')
}

/** A text or an image; what a tool gave in a form of its own is written out. */
function readPart(part: unknown): ContentPart {
  if (typeof part === 'string') return { type: 'text', text: part }
  if (!isRecord(part)) return { type: 'text', text: '' }
  const { type, text = part.refusal, image } = part
  if (typeof text === 'string') return { type: 'text', text }
  const { mediaType = 'image/png' } = isRecord(image) ? image : {}
  const url = imageUrl(image, String(mediaType))
  if (url !== undefined) return { type: 'image_url', image_url: { url } }
  if (typeof type !== 'string') return { type: 'text', text: JSON.stringify(part) }
  throw new TypeError(
    `A part of type ${type} cannot be shown to a policy here: only text and images are read.`,
  )
}

function isRecord(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}
