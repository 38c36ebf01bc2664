import type { Content, Message, ToolDefinition } from '@espalier/text'
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
  short,
  textIn,
  toFields,
} from '../fields.ts'
import { makeTurns, type Turns } from '../merge-turns.ts'
import { chosenTool, jsonSchemaFormat, readName, readTool } from '../tools.ts'
import { readSampling } from './openai-chat-read.ts'
import type { ResponseItem } from './response-memory.ts'

const neutral = { background: false, prompt: null, conversation: null } as const

/** Reads a body of OpenAI's Responses. */
export function readOpenAiResponses(given: unknown, options: ReadOptions): Asked {
  const body = toFields(given, 'the body')
  refuseUnlessNeutral(body, neutral)
  const items = readItems(body, options)
  const tools = readTools(body)
  const include = listIn(body, 'include', { most: 64 }) ?? []
  const topLogprobs = numberIn(body, 'top_logprobs', { low: 0, high: 20, whole: true })
  const chat: ChatRequest = {
    messages: readConversation(body, items),
    tools,
    ...defined({
      toolChoice: readChoice(body.tool_choice, tools),
      parallelCalls: flagIn(body, 'parallel_tool_calls'),
      maxTokens: numberIn(body, 'max_output_tokens', { low: 1, high: most.tokens, whole: true }),
      ...readSampling(body),
      topLogprobs,
      responseFormat: readFormat(body),
    }),
  }
  return {
    chat,
    model: textIn(body, 'model') ?? options.model ?? 'default',
    stream: flagIn(body, 'stream') ?? false,
    body,
    wants: {
      logprobs: include.includes('message.output_text.logprobs') || (topLogprobs ?? 0) > 0,
      tokenIds: flagIn(body, 'return_token_ids') ?? false,
      usage: true,
    },
    items,
  }
}

/** The items of a request: what it refers to, then what it says. */
function readItems(body: Fields, options: ReadOptions): readonly ResponseItem[] {
  const previous = textIn(body, 'previous_response_id')
  const before = previous === undefined ? [] : options.memory?.conversation(previous)
  if (!before) {
    return refuse('previous_response_id', `names no response that this attempt got: ${previous}`)
  }
  if (typeof body.input === 'string') {
    return [...before, { type: 'message', role: 'user', content: body.input }]
  }
  const list = listIn(body, 'input', { most: most.messages })
  if (!list || list.length + before.length === 0) return refuse('input', 'is missing or empty')
  const items = list.map((each, index) => {
    const at = `input[${index}]`
    const item = toFields(each, at)
    return item.type === 'item_reference' ? recall(item, at, options) : item
  })
  return [...before, ...items]
}

function recall(reference: Fields, at: string, { memory }: ReadOptions): ResponseItem {
  const id = neededTextIn(reference, 'id', at)
  return memory?.item(id) ?? refuse(at, `refers to ${short(id)}, which this attempt never got`)
}

function readConversation(body: Fields, items: readonly ResponseItem[]): readonly Message[] {
  const turns = makeTurns()
  const instructions = textIn(body, 'instructions')
  if (instructions !== undefined) turns.add({ role: 'system', content: instructions })
  for (const [index, item] of items.entries()) readItem(item, `input[${index}]`, turns)
  const messages = turns.end()
  if (messages.length > 0 && messages.at(-1)!.role !== 'assistant') return messages
  return refuse('input', 'must end with something that the policy can answer')
}

function readItem(item: ResponseItem, at: string, turns: Turns): void {
  switch (item.type ?? 'message') {
    case 'message':
      readMessage(item, at, turns)
      break
    case 'function_call':
      turns.call({
        id: neededTextIn(item, 'call_id', at),
        type: 'function',
        function: { name: readName(item, at), arguments: neededTextIn(item, 'arguments', at) },
      })
      break
    case 'function_call_output':
      turns.add({
        role: 'tool',
        content: readContent(item, 'output', { at, between: '\n' }),
        tool_call_id: neededTextIn(item, 'call_id', at),
      })
      break
    case 'reasoning':
      turns.reason(readReasoning(item, at))
      break
    default:
      refuseUnsupported(join(at, 'type'), `is ${short(item.type)}, which is not taken`)
  }
}

function readMessage(item: ResponseItem, at: string, turns: Turns): void {
  const { role } = item
  const between = role === 'assistant' ? '' : '\n'
  const content = readContent(item, 'content', { at, between })
  if (role === 'assistant') turns.say(content)
  else if (role === 'user' || role === 'system' || role === 'developer') {
    turns.add({ role, content })
  } else
    refuse(join(at, 'role'), `must be user, assistant, system or developer, got ${short(role)}`)
}

/** Reasoning as it was answered: its own text, or else its summary. */
function readReasoning(item: ResponseItem, at: string): string {
  const own = listIn(item, 'content', { most: most.parts, at }) ?? []
  const list = own.length > 0 ? own : (listIn(item, 'summary', { most: most.parts, at }) ?? [])
  return list
    .map((part, index) => neededTextIn(toFields(part, `${at}[${index}]`), 'text', at))
    .join('')
}

function readContent(
  item: ResponseItem,
  name: string,
  { at, between }: { readonly at: string; readonly between: string },
): Content {
  const value = item[name]
  if (typeof value === 'string') return value
  const place = join(at, name)
  const parts = listIn(item, name, { most: most.parts, at }) ?? refuse(place, 'is missing')
  return joinParts(
    parts.map((part, index) => readPart(toFields(part, place), `${place}[${index}]`)),
    between,
  )
}

function readPart(part: Fields, at: string) {
  switch (part.type) {
    case 'input_text':
    case 'output_text':
    case 'text':
      return { type: 'text', text: neededTextIn(part, 'text', at) } as const
    case 'refusal':
      return { type: 'text', text: neededTextIn(part, 'refusal', at) } as const
    case 'input_image':
      return imagePart(neededTextIn(part, 'image_url', at))
    default:
      return refuseUnsupported(join(at, 'type'), `is ${short(part.type)}, which is not taken`)
  }
}

function readTools(body: Fields): readonly ToolDefinition[] {
  const list = listIn(body, 'tools', { most: most.tools }) ?? []
  return list.map((each, index) => {
    const at = `tools[${index}]`
    const fields = toFields(each, at)
    if (fields.type === 'function') return readTool(fields, at, 'parameters')
    return refuseUnsupported(at, `is of type ${short(fields.type)}: only function tools are taken`)
  })
}

function readChoice(value: unknown, tools: readonly ToolDefinition[]): ToolChoice | undefined {
  if (value === undefined || value === null) return undefined
  if (value === 'auto' || value === 'none' || value === 'required') return value
  const fields = toFields(value, 'tool_choice')
  if (fields.type !== 'function') {
    return refuseUnsupported('tool_choice', 'must be auto, none, required or name one function')
  }
  return chosenTool(neededTextIn(fields, 'name', 'tool_choice'), tools, 'tool_choice')
}

function readFormat(body: Fields): ResponseFormat | undefined {
  const format = fieldsIn(fieldsIn(body, 'text') ?? {}, 'format', 'text')
  if (!format || format.type === 'text') return undefined
  if (format.type === 'json_object') return { kind: 'json' }
  if (format.type === 'json_schema') return jsonSchemaFormat(format.schema, 'text.format.schema')
  return refuse('text.format.type', 'must be text, json_object or json_schema')
}
