import type { Message, ToolCall, ToolDefinition } from '@espalier/text'
import { type Fields, ReadError } from '../fields.ts'
import { type FormatReader, type ReadTrajectory, shownReward, unknownParts } from '../reader.ts'

/**
 * Traces: spans of the AI SDK's telemetry and of OpenTelemetry's GenAI conventions, one span or one
 * OTLP export per line. The requests to models and their answers become conversations; traces have no
 * tokens, so these are encoded again, and have reward 1.
 */
export const otelReader: FormatReader = {
  name: 'otel',
  kind: 'lines',
  hasOnlyMessages: true,
  read: readTraces,
}

/** Reads OpenTelemetry's spans under the AI SDK's name. */
export const aiSdkReader: FormatReader = { ...otelReader, name: 'ai-sdk' }

/** One request to a model, from a span. */
interface Exchange {
  readonly trace: string
  readonly start: string
  readonly messages: readonly Message[]
  readonly tools: readonly ToolDefinition[]
}

async function* readTraces(records: AsyncIterable<Fields>): AsyncGenerator<ReadTrajectory> {
  const traces = new Map<string, Exchange[]>()
  for await (const record of records) {
    for (const span of spansIn(record)) {
      const exchange = readSpan(span)
      if (!exchange) continue
      const trace = traces.get(exchange.trace)
      if (trace) trace.push(exchange)
      else traces.set(exchange.trace, [exchange])
    }
  }
  for (const [trace, exchanges] of traces) {
    for (const [member, { messages, tools }] of wholeConversations(exchanges).entries()) {
      const prompt = messages.find(({ role }) => role === 'user')?.content ?? ''
      yield {
        ...unknownParts,
        group: trace,
        task: trace,
        data: { prompt },
        member,
        paths: [],
        messages,
        tools,
        reward: shownReward,
      }
    }
  }
}

/** The spans of a line: those of an OTLP export, or the line itself. */
function spansIn(record: Fields): readonly Fields[] {
  if (!record.has('resourceSpans')) return [record]
  return record
    .each('resourceSpans')
    .flatMap(resource => resource.each('scopeSpans'))
    .flatMap(scope => scope.each('spans'))
}

/** Each request repeats the turns before it, so only conversations that no other one continues are kept. */
function wholeConversations(exchanges: readonly Exchange[]): readonly Exchange[] {
  const texts = exchanges.map(({ messages }) => messages.map(message => JSON.stringify(message)))
  return exchanges
    .filter(
      (_, index) =>
        !texts.some((other, at) => at !== index && isBeginning(texts[index]!, other, at > index)),
    )
    .sort((one, other) => (one.start < other.start ? -1 : 1))
}

/** Of conversations that are the same, the last one stands for all. */
function isBeginning(
  texts: readonly string[],
  other: readonly string[],
  isLater: boolean,
): boolean {
  if (other.length < texts.length || (other.length === texts.length && !isLater)) return false
  return texts.every((text, index) => text === other[index])
}

function readSpan(span: Fields): Exchange | undefined {
  const attributes = attributesOf(span)
  const said = aiSdkMessages(attributes, span.place) ?? genAiMessages(attributes, span.place)
  if (!said) return undefined
  const trace = span.value.traceId ?? span.value.trace_id
  return {
    trace: typeof trace === 'string' ? trace : span.place,
    start: String(span.value.startTimeUnixNano ?? span.value.startTime ?? '').padStart(24, '0'),
    ...said,
  }
}

type Attributes = Readonly<Record<string, unknown>>

/** Attributes as an object, or as OTLP's list of keys and typed values. */
function attributesOf(span: Fields): Attributes {
  const given = span.value.attributes
  if (!Array.isArray(given)) return span.has('attributes') ? span.inner('attributes').value : {}
  return Object.fromEntries(
    span.each('attributes').map(({ value }) => [String(value.key), plainValue(value.value)]),
  )
}

function plainValue(value: unknown): unknown {
  if (!isRecord(value)) return value
  if (isRecord(value.arrayValue) && Array.isArray(value.arrayValue.values)) {
    return value.arrayValue.values.map(plainValue)
  }
  return value.stringValue ?? value.intValue ?? value.doubleValue ?? value.boolValue
}

type Said = Pick<Exchange, 'messages' | 'tools'>

/** The messages of one model call in the AI SDK's attributes. */
function aiSdkMessages(attributes: Attributes, place: string): Said | undefined {
  const prompt = attributes['ai.prompt.messages']
  if (typeof prompt !== 'string') return undefined
  const text = attributes['ai.response.text']
  const reasoning = attributes['ai.response.reasoning']
  const called = attributes['ai.response.toolCalls']
  const calls = typeof called === 'string' ? listIn(called, place).map(readCall) : []
  const tools = attributes['ai.prompt.tools']
  return {
    messages: [...listIn(prompt, place).flatMap(readPrompt), answer(text, reasoning, calls)],
    tools: (Array.isArray(tools) ? tools : []).map(tool => readTool(jsonIn(String(tool), place))),
  }
}

/** The messages of one model call in OpenTelemetry's attributes. */
function genAiMessages(attributes: Attributes, place: string): Said | undefined {
  const [input, output] = [
    attributes['gen_ai.input.messages'],
    attributes['gen_ai.output.messages'],
  ]
  if (input === undefined || output === undefined) return undefined
  const system = attributes['gen_ai.system_instructions']
  const words = system === undefined ? '' : partsText(listIn(system, place))
  const tools = attributes['gen_ai.tool.definitions']
  return {
    messages: [
      ...(words === '' ? [] : [{ role: 'system' as const, content: words }]),
      ...listIn(input, place).flatMap(readPrompt),
      ...listIn(output, place).slice(0, 1).flatMap(readPrompt),
    ],
    tools: tools === undefined ? [] : listIn(tools, place).map(readTool),
  }
}

/** A message of either kind: `content` in parts or plain, or `parts`. */
export function readPrompt(value: unknown): readonly Message[] {
  const { role, content, parts } = isRecord(value) ? value : {}
  const given = parts ?? content
  const list = Array.isArray(given) ? given : [{ type: 'text', text: String(given ?? '') }]
  const results = list.filter(part => isType(part, 'tool-result', 'tool_call_response'))
  if (results.length > 0) return results.map(readResult)
  if (role === 'system' || role === 'user') return [{ role, content: partsText(list) }]
  const reasoning = list.filter(part => isType(part, 'reasoning', 'thinking'))
  const calls = list.filter(part => isType(part, 'tool-call', 'tool_call')).map(readCall)
  return [answer(partsText(list), partsText(reasoning, true), calls)]
}

function answer(text: unknown, reasoning: unknown, calls: readonly ToolCall[]): Message {
  return {
    role: 'assistant',
    content: typeof text === 'string' ? text : '',
    ...(typeof reasoning === 'string' && reasoning !== '' && { reasoning_content: reasoning }),
    ...(calls.length > 0 && { tool_calls: calls }),
  }
}

function readResult(part: unknown): Message {
  const { toolCallId, id, output, response, result } = isRecord(part) ? part : {}
  const given =
    isRecord(output) && 'value' in output ? output.value : (output ?? response ?? result)
  const content = typeof given === 'string' ? given : JSON.stringify(given ?? null)
  return { role: 'tool', tool_call_id: String(toolCallId ?? id ?? ''), content }
}

function readCall(part: unknown): ToolCall {
  const {
    toolCallId,
    id,
    toolName,
    name,
    input,
    args,
    arguments: given,
  } = isRecord(part) ? part : {}
  const asked = input ?? given ?? args ?? {}
  return {
    id: String(toolCallId ?? id ?? ''),
    type: 'function',
    function: {
      name: String(toolName ?? name ?? ''),
      arguments: typeof asked === 'string' ? asked : JSON.stringify(asked),
    },
  }
}

function readTool(value: unknown): ToolDefinition {
  const tool = isRecord(value) ? value : {}
  const described = isRecord(tool.function) ? tool.function : tool
  const { name, description, inputSchema, parameters } = described
  return {
    type: 'function',
    function: {
      name: String(name ?? ''),
      ...(typeof description === 'string' && { description }),
      parameters: [inputSchema, parameters].find(isRecord) ?? { type: 'object', properties: {} },
    },
  }
}

function partsText(parts: readonly unknown[], isReasoning = false): string {
  return parts
    .map(part => {
      const isWanted = isReasoning || isType(part, 'text')
      return isRecord(part) && isWanted ? String(part.text ?? part.content ?? '') : ''
    })
    .join('')
}

function isType(part: unknown, ...types: readonly string[]): boolean {
  return isRecord(part) && types.includes(String(part.type))
}

/** A list that may be written as JSON. */
function listIn(value: unknown, place: string): readonly unknown[] {
  const list = typeof value === 'string' ? jsonIn(value, place) : value
  if (Array.isArray(list)) return list
  throw new ReadError(`${place}: expected a list of messages or calls`)
}

function jsonIn(text: string, place: string): unknown {
  try {
    return JSON.parse(text)
  } catch (cause) {
    throw new ReadError(`${place}: an attribute is not JSON`, { cause })
  }
}

function isRecord(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}
