import type { Content, ContentPart, ToolDefinition } from '@espalier/text'
import type { ChatRequest, ResponseFormat, ToolChoice } from '../contract.ts'
import { most } from './bounds.ts'
import { imagePart, joinParts } from './content.ts'
import type { Asked, ReadOptions } from './dialect.ts'
import {
  boundedJson,
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
import { plainSchema } from './google-schema.ts'
import { makeTurns, type Turns } from './merge-turns.ts'
import { argumentsText, chosenTool, jsonSchemaFormat, readName, readTool } from './tools.ts'

/** What every content is read with. */
interface Reading {
  readonly turns: Turns
  /** Calls that have no response yet, oldest first. */
  readonly open: { readonly id: string; readonly name: string }[]
  /** How many calls had no id of their own. */
  unnamed: number
}

/** Reads a body of Google's generateContent, in either spelling of its field names. */
export function readGoogle(given: unknown, options: ReadOptions): Asked {
  const body = camelFields(toFields(given, 'the body'))
  refuseUnlessNeutral(body, { cachedContent: null })
  const config = camelFields(fieldsIn(body, 'generationConfig') ?? {})
  const at = 'generationConfig'
  refuseUnlessNeutral(config, { presencePenalty: 0, frequencyPenalty: 0 }, at)
  const tools = readTools(body)
  const whole = { whole: true, at } as const
  const topLogprobs = numberIn(config, 'logprobs', { ...whole, low: 0, high: 20 })
  const chat: ChatRequest = {
    messages: readContents(body),
    tools,
    ...readChoice(body, tools),
    ...defined({
      maxTokens: numberIn(config, 'maxOutputTokens', { ...whole, low: 1, high: most.tokens }),
      temperature: numberIn(config, 'temperature', { low: 0, high: 100, at }),
      topP: numberIn(config, 'topP', { low: Number.MIN_VALUE, high: 1, at }),
      topK: numberIn(config, 'topK', { low: 0, high: most.tokens, at }),
      stop: textsIn(config, 'stopSequences', at),
      seed: numberIn(config, 'seed', { ...whole, low: Number.MIN_SAFE_INTEGER }),
      count: numberIn(config, 'candidateCount', { ...whole, low: 1, high: most.answers }),
      topLogprobs,
      responseFormat: readFormat(config, at),
    }),
  }
  return {
    chat,
    model: options.model ?? 'default',
    stream: options.stream ?? false,
    body,
    wants: {
      logprobs: (flagIn(config, 'responseLogprobs', at) ?? false) || (topLogprobs ?? 0) > 0,
      tokenIds: false,
      usage: true,
    },
  }
}

/** Protocol buffers as JSON may spell names `like_this`; we read them `likeThis`. */
function camelFields(fields: Fields): Fields {
  const spelled = Object.entries(fields).map(([name, value]) => [
    name.replace(/_([a-z])/g, (_, letter: string) => letter.toUpperCase()),
    value,
  ])
  return Object.fromEntries(spelled)
}

function readContents(body: Fields): ChatRequest['messages'] {
  const reading: Reading = { turns: makeTurns(), open: [], unnamed: 0 }
  const instruction = body.systemInstruction
  if (instruction !== undefined && instruction !== null) {
    const at = 'systemInstruction'
    const parts = partsOf(
      typeof instruction === 'string' ? { parts: [{ text: instruction }] } : instruction,
      at,
    ).map((part, index) => readPart(part, `${at}.parts[${index}]`))
    reading.turns.add({ role: 'system', content: joinParts(parts, '\n') })
  }
  const contents = listIn(body, 'contents', { most: most.messages }) ?? []
  if (contents.length === 0) refuse('contents', 'is missing or empty')
  for (const [index, content] of contents.entries()) {
    readOne(toFields(content, `contents[${index}]`), `contents[${index}]`, reading)
  }
  const messages = reading.turns.end()
  if (messages.at(-1)?.role !== 'assistant') return messages
  return refuseUnsupported(
    `contents[${contents.length - 1}]`,
    'is of the model: an answer cannot be begun for the policy; end with another content',
  )
}

function readOne(content: Fields, at: string, reading: Reading): void {
  const role = textIn(content, 'role', at) ?? 'user'
  const parts = partsOf(content, at)
  if (role === 'model') {
    for (const [index, part] of parts.entries()) {
      readModelPart(part, `${at}.parts[${index}]`, reading)
    }
    return
  }
  if (role !== 'user' && role !== 'function' && role !== 'tool') {
    refuse(join(at, 'role'), `must be user, model or function, got ${short(role)}`)
  }
  readGivenParts(parts, at, reading)
}

function partsOf(content: unknown, at: string): readonly Fields[] {
  const fields = toFields(content, at)
  const list =
    listIn(fields, 'parts', { most: most.parts, at }) ?? refuse(`${at}.parts`, 'is missing')
  return list.map((part, index) => camelFields(toFields(part, `${at}.parts[${index}]`)))
}

function readModelPart(part: Fields, at: string, reading: Reading): void {
  const { turns, open } = reading
  const text = textIn(part, 'text', at)
  if (text !== undefined) {
    if (flagIn(part, 'thought', at)) turns.reason(text)
    else turns.say(text)
    return
  }
  const called =
    fieldsIn(part, 'functionCall', at) ??
    refuseUnsupported(at, 'is neither text nor a functionCall')
  const place = join(at, 'functionCall')
  const name = readName(called, place)
  const id = textIn(called, 'id', place) ?? `call_unnamed_${reading.unnamed++}`
  open.push({ id, name })
  turns.call({
    id,
    type: 'function',
    function: { name, arguments: argumentsText(called.args, join(place, 'args')) },
  })
}

/** Function responses become tool messages; the other parts follow as one message. */
function readGivenParts(parts: readonly Fields[], at: string, reading: Reading): void {
  const { turns, open } = reading
  const said: ContentPart[] = []
  for (const [index, part] of parts.entries()) {
    const here = `${at}.parts[${index}]`
    const answered = fieldsIn(part, 'functionResponse', here)
    if (!answered) {
      said.push(readPart(part, here))
      continue
    }
    const place = join(here, 'functionResponse')
    const name = readName(answered, place)
    const id = textIn(answered, 'id', place)
    const known = open.findIndex(call => (id === undefined ? call.name === name : call.id === id))
    if (known < 0 && id === undefined) {
      refuse(place, `answers ${short(name)}, which has no call waiting for it`)
    }
    const call = known < 0 ? undefined : open.splice(known, 1)[0]
    turns.add({
      role: 'tool',
      tool_call_id: id ?? call!.id,
      name,
      content: readResponse(answered, place),
    })
  }
  if (said.length > 0) turns.add({ role: 'user', content: joinParts(said, '\n') })
}

/** What a function gave, with the images beside it. */
function readResponse(answered: Fields, place: string): Content {
  const text = responseText(answered.response, join(place, 'response'))
  const parts = listIn(answered, 'parts', { most: most.parts, at: place }) ?? []
  const shown = parts.map((part, index) => {
    const at = `${place}.parts[${index}]`
    return readPart(camelFields(toFields(part, at)), at)
  })
  return joinParts([{ type: 'text', text }, ...shown], '\n')
}

/** What a function gave: the text alone if it is one, else its JSON. */
function responseText(value: unknown, place: string): string {
  const fields = boundedJson(toFields(value ?? {}, place), place)
  const names = Object.keys(fields)
  const only = names.length === 1 ? fields[names[0]!] : undefined
  const isPlain = names[0] === 'output' || names[0] === 'result'
  return isPlain && typeof only === 'string' ? only : JSON.stringify(fields)
}

function readPart(part: Fields, at: string): ContentPart {
  const text = textIn(part, 'text', at)
  if (text !== undefined) return { type: 'text', text }
  const inline = fieldsIn(part, 'inlineData', at)
  const file = inline ? undefined : fieldsIn(part, 'fileData', at)
  if (file) return imagePart(neededTextIn(camelFields(file), 'fileUri', join(at, 'fileData')))
  if (!inline) return refuseUnsupported(at, 'is neither text nor inlineData nor fileData')
  const place = join(at, 'inlineData')
  const { mimeType } = camelFields(inline)
  if (typeof mimeType !== 'string' || !mimeType.startsWith('image/')) {
    return refuseUnsupported(place, `is ${short(mimeType)}; only images are taken`)
  }
  const url = `data:${mimeType};base64,${neededTextIn(inline, 'data', place)}`
  return imagePart(url)
}

function readTools(body: Fields): readonly ToolDefinition[] {
  const list = listIn(body, 'tools', { most: most.tools }) ?? []
  return list.flatMap((each, index) => {
    const at = `tools[${index}]`
    const fields = camelFields(toFields(each, at))
    const other = Object.keys(fields).find(name => name !== 'functionDeclarations')
    if (other !== undefined) {
      refuseUnsupported(join(at, other), 'is not taken: only functionDeclarations are')
    }
    const declared = listIn(fields, 'functionDeclarations', { most: most.tools, at }) ?? []
    return declared.map((one, place) =>
      readDeclaration(one, `${at}.functionDeclarations[${place}]`),
    )
  })
}

function readDeclaration(value: unknown, at: string): ToolDefinition {
  const fields = camelFields(toFields(value, at))
  if (fields.parametersJsonSchema) return readTool(fields, at, 'parametersJsonSchema')
  const declared = readTool(fields, at, 'parameters')
  const parameters = plainSchema(declared.function.parameters) as Fields
  return { ...declared, function: { ...declared.function, parameters } }
}

function readChoice(
  body: Fields,
  tools: readonly ToolDefinition[],
): Pick<ChatRequest, 'toolChoice'> {
  const config = fieldsIn(body, 'toolConfig')
  const at = 'toolConfig.functionCallingConfig'
  const calling = config && fieldsIn(camelFields(config), 'functionCallingConfig', 'toolConfig')
  if (!calling) return {}
  const fields = camelFields(calling)
  const names = textsIn(fields, 'allowedFunctionNames', at) ?? []
  return { toolChoice: choiceOf(textIn(fields, 'mode', at) ?? 'AUTO', { names, tools, at }) }
}

function choiceOf(
  mode: string,
  from: {
    readonly names: readonly string[]
    readonly tools: readonly ToolDefinition[]
    readonly at: string
  },
): ToolChoice {
  const { names, tools, at } = from
  switch (mode) {
    case 'MODE_UNSPECIFIED':
    case 'AUTO':
      return 'auto'
    case 'NONE':
      return 'none'
    case 'ANY':
    case 'VALIDATED':
      if (names.length === 1) return chosenTool(names[0]!, tools, `${at}.allowedFunctionNames`)
      if (names.length === 0) return 'required'
      return refuseUnsupported(`${at}.allowedFunctionNames`, 'may name one function or none')
    default:
      return refuse(`${at}.mode`, `must be AUTO, ANY or NONE, got ${short(mode)}`)
  }
}

function readFormat(config: Fields, at: string): ResponseFormat | undefined {
  const schema = config.responseJsonSchema ?? config.responseSchema
  if (schema !== undefined && schema !== null) {
    const place = `${at}.responseSchema`
    return jsonSchemaFormat(plainSchema(boundedJson(schema, place)), place)
  }
  return textIn(config, 'responseMimeType', at) === 'application/json'
    ? { kind: 'json' }
    : undefined
}
