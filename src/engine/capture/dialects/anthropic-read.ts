import type { Content, ContentPart, ToolDefinition } from '@espalier/text'
import type { ChatRequest, ResponseFormat, ToolChoice } from '../contract.ts'
import { most } from './bounds.ts'
import { imagePart, joinParts } from './content.ts'
import type { Asked, ReadOptions } from './dialect.ts'
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
  short,
  textIn,
  textsIn,
  toFields,
} from './fields.ts'
import { makeTurns, type Turns } from './merge-turns.ts'
import { argumentsText, chosenTool, jsonSchemaFormat, readName, readTool } from './tools.ts'

/** Fields by which a server would hold or change the conversation itself, or bring tools of its own. */
const neutral = { mcp_servers: null, container: null, thread: null, compaction: null } as const

/** Reads a body of Anthropic's Messages. */
export function readAnthropic(given: unknown, options: ReadOptions): Asked {
  const asked = readAnthropicPrompt(given, options)
  if (asked.chat.maxTokens === undefined) refuse('max_tokens', 'is missing')
  return asked
}

/** Reads a body whose tokens are only counted, so fields about the answer may be missing. */
export function readAnthropicPrompt(given: unknown, options: ReadOptions): Asked {
  const body = toFields(given, 'the body')
  refuseUnlessNeutral(body, neutral)
  const tools = readTools(body)
  const chat: ChatRequest = {
    messages: readMessages(body),
    tools,
    ...defined({
      ...readChoice(body, tools),
      maxTokens: numberIn(body, 'max_tokens', { low: 1, high: most.tokens, whole: true }),
      temperature: numberIn(body, 'temperature', { low: 0, high: 1 }),
      topP: numberIn(body, 'top_p', { low: Number.MIN_VALUE, high: 1 }),
      topK: numberIn(body, 'top_k', { low: 0, high: most.tokens, whole: true }),
      stop: textsIn(body, 'stop_sequences'),
      responseFormat: readFormat(body),
    }),
  }
  return {
    chat,
    model: textIn(body, 'model') ?? options.model ?? 'default',
    stream: flagIn(body, 'stream') ?? false,
    body,
    wants: { logprobs: false, tokenIds: false, usage: true },
  }
}

function readMessages(body: Fields): ChatRequest['messages'] {
  const turns = makeTurns()
  if (body.system !== undefined && body.system !== null) {
    const content = readContent(body.system, 'system')
    if (content !== '') turns.add({ role: 'system', content })
  }
  const list = listIn(body, 'messages', { most: most.messages }) ?? []
  for (const [index, each] of list.entries()) {
    const at = `messages[${index}]`
    readMessage(toFields(each, at), at, turns)
  }
  const messages = turns.end()
  if (list.length === 0) refuse('messages', 'is missing or empty')
  if (messages.at(-1)?.role !== 'assistant') return messages
  return refuseUnsupported(
    `messages[${list.length - 1}]`,
    'is of the assistant: an answer cannot be begun for the policy; end with a user message',
  )
}

function readMessage(fields: Fields, at: string, turns: Turns): void {
  const { role, content } = fields
  const place = join(at, 'content')
  if (role !== 'user' && role !== 'assistant' && role !== 'system') {
    refuse(join(at, 'role'), `must be user, assistant or system, got ${short(role)}`)
  }
  if (role === 'system') {
    turns.add({ role, content: readContent(content, place) })
    return
  }
  if (typeof content === 'string') {
    if (role === 'assistant') turns.say(content)
    else turns.add({ role, content })
    return
  }
  const blocks = listIn(fields, 'content', { most: most.parts, at }) ?? refuse(place, 'is missing')
  if (role === 'user') {
    readUserBlocks(blocks, place, turns)
    return
  }
  for (const [index, block] of blocks.entries()) {
    const here = `${place}[${index}]`
    readAssistantBlock(toFields(block, here), here, turns)
  }
}

/** Results of tools are messages of their own; what else a user says follows them. */
function readUserBlocks(blocks: readonly unknown[], place: string, turns: Turns): void {
  const parts: ContentPart[] = []
  for (const [index, each] of blocks.entries()) {
    const at = `${place}[${index}]`
    const block = toFields(each, at)
    if (block.type !== 'tool_result') {
      parts.push(readPart(block, at))
      continue
    }
    turns.add({
      role: 'tool',
      tool_call_id: neededTextIn(block, 'tool_use_id', at),
      content: readContent(block.content ?? '', join(at, 'content')),
    })
  }
  if (parts.length > 0) turns.add({ role: 'user', content: joinParts(parts, '\n') })
}

function readAssistantBlock(block: Fields, at: string, turns: Turns): void {
  switch (block.type) {
    case 'text':
      turns.say(neededTextIn(block, 'text', at))
      break
    case 'thinking':
      turns.reason(neededTextIn(block, 'thinking', at))
      break
    case 'redacted_thinking':
      break
    case 'tool_use':
      turns.call({
        id: neededTextIn(block, 'id', at),
        type: 'function',
        function: { name: readName(block, at), arguments: argumentsText(block.input, at) },
      })
      break
    default:
      refuseUnsupported(join(at, 'type'), `is ${short(block.type)}, which is not taken`)
  }
}

function readContent(value: unknown, at: string): Content {
  if (typeof value === 'string') return value
  if (!Array.isArray(value)) return refuse(at, `must be a text or a list of blocks`)
  if (value.length > most.parts) return refuse(at, `has more than ${most.parts} blocks`)
  const parts = value.map((each, index) => {
    const here = `${at}[${index}]`
    return readPart(toFields(each, here), here)
  })
  return joinParts(parts, '\n')
}

function readPart(block: Fields, at: string): ContentPart {
  if (block.type === 'text') return { type: 'text', text: neededTextIn(block, 'text', at) }
  if (block.type !== 'image') {
    return refuseUnsupported(join(at, 'type'), `is ${short(block.type)}; text and image are taken`)
  }
  const place = join(at, 'source')
  const source = toFields(block.source, place)
  if (source.type === 'url') return imagePart(neededTextIn(source, 'url', place))
  if (source.type !== 'base64') return refuseUnsupported(place, 'must be of type base64 or url')
  const media = neededTextIn(source, 'media_type', place)
  return imagePart(`data:${media};base64,${neededTextIn(source, 'data', place)}`)
}

function readTools(body: Fields): readonly ToolDefinition[] {
  const list = listIn(body, 'tools', { most: most.tools }) ?? []
  return list.map((each, index) => {
    const at = `tools[${index}]`
    const fields = toFields(each, at)
    const isOwn = fields.type === undefined || fields.type === null || fields.type === 'custom'
    if (isOwn) return readTool(fields, at, 'input_schema')
    return refuseUnsupported(at, `is of type ${short(fields.type)}: only custom tools are taken`)
  })
}

function readChoice(
  body: Fields,
  tools: readonly ToolDefinition[],
): Pick<ChatRequest, 'toolChoice' | 'parallelCalls'> {
  const fields = fieldsIn(body, 'tool_choice')
  if (!fields) return {}
  const isSingle = flagIn(fields, 'disable_parallel_tool_use', 'tool_choice') ?? false
  return { toolChoice: choiceOf(fields, tools), ...(isSingle && { parallelCalls: false }) }
}

function choiceOf(fields: Fields, tools: readonly ToolDefinition[]): ToolChoice {
  switch (fields.type) {
    case 'auto':
    case 'none':
      return fields.type
    case 'any':
      return 'required'
    case 'tool':
      return chosenTool(neededTextIn(fields, 'name', 'tool_choice'), tools, 'tool_choice.name')
    default:
      return refuse(
        'tool_choice.type',
        `must be auto, any, tool or none, got ${short(fields.type)}`,
      )
  }
}

function readFormat(body: Fields): ResponseFormat | undefined {
  const config = fieldsIn(body, 'output_config') ?? {}
  const format = fieldsIn(config, 'format', 'output_config') ?? fieldsIn(body, 'output_format')
  if (!format) return undefined
  const at = 'output_config.format'
  if (format.type === 'json_schema') return jsonSchemaFormat(format.schema, `${at}.schema`)
  return refuse(`${at}.type`, `must be json_schema, got ${short(format.type)}`)
}
