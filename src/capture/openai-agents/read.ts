import type { Message, ToolCall, ToolDefinition } from '../../core/message.ts'
import type { ChatRequest, ToolChoice } from '../contract.ts'
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
    if (item.role === 'assistant') answer.content += textIn(item.content)
    else if (item.type === 'reasoning') answer.reasoning += textIn(item.content)
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
      content: textIn(output),
      ...(name !== undefined && { name }),
    }
  }
  if (role === 'user' || role === 'system') return { role, content: textIn(content) }
  throw new TypeError(`An item of type ${String(type)} cannot be shown to a policy here.`)
}

function readCall({ callId = '', name = '', arguments: text = '{}' }: InputItem): ToolCall {
  return { id: callId, type: 'function', function: { name, arguments: text } }
}

function textIn(content: unknown): string {
  if (typeof content === 'string') return content
  if (Array.isArray(content)) return content.map(textIn).join('')
  if (!isRecord(content)) return ''
  return typeof content.text === 'string' ? content.text : JSON.stringify(content)
}

function isRecord(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}
