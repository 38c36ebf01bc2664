import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import type { Message, Reply, ToolDefinition } from '../../core/message.ts'
import type { Renderer } from '../../core/renderer.ts'
import type { TokenNews } from '../protocol.ts'
import {
  BadRequest,
  type Fields,
  flagIn,
  numberIn,
  refuseFields,
  textIn,
  textsIn,
  toFields,
  toIds,
} from './fields.ts'
import { type Generated, type Generation, generate, type Served, textOfIds } from './generation.ts'
import { goneSignal, sendEvents } from './stream.ts'

/** Adds OpenAI's chat and completions routes, with token ids for who asks for them. */
export function addOpenAiRoutes(server: FastifyInstance, served: Served, renderer: Renderer): void {
  server.get('/v1/models', async () => ({
    object: 'list',
    data: [{ id: served.name, object: 'model', owned_by: 'espalier', root: served.folder }],
  }))
  server.post('/v1/completions', (request, reply) => complete(served, request, reply))
  server.post('/v1/chat/completions', (request, reply) =>
    chat({ served, renderer }, request, reply),
  )
}

interface Answering {
  readonly id: string
  readonly fields: Fields
  readonly generation: Generation
}

async function complete(
  served: Served,
  request: FastifyRequest,
  reply: FastifyReply,
): Promise<unknown> {
  const fields = toFields(request.body, 'the body')
  const { prompt } = fields
  const ids =
    typeof prompt === 'string'
      ? served.tokenizer.encode(prompt)
      : toIds(prompt, 'prompt', served.model.shape.vocabulary)
  const generation = readGeneration(served, fields, { prompt: ids, maxTokens: 16 })
  const gone = goneSignal(reply)
  const answering = { id: `cmpl-${request.id}`, fields, generation }
  if (flagIn(fields, 'stream')) {
    return await sendEvents(reply, send =>
      streamText(served, answering, { gone, send: part => send(toCompletion(served, part)) }),
    )
  }
  return toCompletion(served, toPart(served, answering, await generate(served, generation, gone)))
}

async function chat(
  { served, renderer }: { readonly served: Served; readonly renderer: Renderer },
  request: FastifyRequest,
  reply: FastifyReply,
): Promise<unknown> {
  const fields = toFields(request.body, 'the body')
  const messages = readList<Message>(fields, 'messages')
  if (messages.length === 0) throw new BadRequest('messages is missing or empty')
  const tools = readList<ToolDefinition>(fields, 'tools')
  const prompt = Array.isArray(fields.input_ids)
    ? toIds(fields.input_ids, 'input_ids', served.model.shape.vocabulary)
    : renderer.render(messages, tools)
  const maxTokens = served.model.shape.context - prompt.length
  const generation = readGeneration(served, fields, { prompt, maxTokens })
  const gone = goneSignal(reply)
  const answering = { id: `chatcmpl-${request.id}`, fields, generation }
  const finish = (generated: Generated) => {
    const { message, calls } = renderer.parse(generated.ids, tools, 0)
    return { ...toPart(served, answering, generated), message, calls }
  }
  if (flagIn(fields, 'stream')) {
    return await sendEvents(reply, async send => {
      // A call is only known to be one when it is whole, so that a turn is told at its end.
      const part = finish(await generate(served, generation, gone))
      send(toChat(served, part, 'delta'))
    })
  }
  return toChat(served, finish(await generate(served, generation, gone)), 'message')
}

function readList<T>(fields: Fields, name: string): readonly T[] {
  const value = fields[name] ?? []
  if (Array.isArray(value)) return value as readonly T[]
  throw new BadRequest(`${name} must be a list`)
}

const impossible = {
  n: 1,
  frequency_penalty: 0,
  presence_penalty: 0,
  repetition_penalty: 1,
  logit_bias: null,
  response_format: null,
  echo: false,
  suffix: null,
} as const

function readGeneration(
  served: Served,
  fields: Fields,
  { prompt, maxTokens }: { readonly prompt: Int32Array; readonly maxTokens: number },
): Generation {
  refuseFields(fields, impossible)
  const { context } = served.model.shape
  if (prompt.length === 0 || prompt.length >= context) {
    throw new BadRequest(
      `The prompt has ${prompt.length} tokens; this model's context length is ${context} tokens.`,
    )
  }
  const whole = { whole: true, low: 0 } as const
  const asked = numberIn(fields, 'max_completion_tokens', {
    ...whole,
    otherwise: undefined,
    low: 1,
  })
  const rid = textIn(fields, 'rid')
  const seed = numberIn(fields, 'seed', { ...whole, otherwise: undefined })
  return {
    ...(rid !== undefined && { rid }),
    prompt,
    maxTokens: asked ?? numberIn(fields, 'max_tokens', { ...whole, otherwise: maxTokens, low: 1 }),
    sampling: {
      temperature: numberIn(fields, 'temperature', { otherwise: 1, low: 0, high: 1000 }),
      topP: numberIn(fields, 'top_p', { otherwise: 1, low: Number.MIN_VALUE, high: 1 }),
      topK: Math.max(0, numberIn(fields, 'top_k', { otherwise: 0, low: -1, whole: true })),
      minP: numberIn(fields, 'min_p', { otherwise: 0, low: 0, high: 1 }),
    },
    stopIds: [
      ...(flagIn(fields, 'ignore_eos') ? [] : served.stopIds),
      ...toIds(fields.stop_token_ids ?? [], 'stop_token_ids', Number.MAX_SAFE_INTEGER),
    ],
    stopStrings: textsIn(fields, 'stop'),
    ...(seed !== undefined && { seed }),
    topLogprobs: numberIn(fields, 'top_logprobs', { ...whole, otherwise: 0, high: 20 }),
  }
}

/** A sample, or what came new of it, before it is written in a dialect. */
interface Part extends Answering {
  readonly text: string
  readonly ids: Int32Array
  readonly logprobs: Float32Array
  readonly finish: string | null
}

function toPart(served: Served, answering: Answering, generated: Generated): Part {
  const { ids, logprobs, finish } = generated
  const keepsStop = flagIn(answering.fields, 'no_stop_trim')
  const skipSpecial = flagIn(answering.fields, 'skip_special_tokens', true)
  const text = textOfIds(served, ids, { keepsStop, skipSpecial })
  return { ...answering, text, ids, logprobs, finish: finish.kind }
}

async function streamText(
  served: Served,
  answering: Answering,
  { gone, send }: { readonly gone: AbortSignal; readonly send: (part: Part) => void },
): Promise<void> {
  const decoder = served.tokenizer.openDecoder({
    skipSpecial: flagIn(answering.fields, 'skip_special_tokens', true),
  })
  const onToken = ({ id, logprob }: TokenNews): void => {
    const ids = Int32Array.of(id)
    const text = decoder.push(ids)
    send({ ...answering, text, ids, logprobs: Float32Array.of(logprob), finish: null })
  }
  const { finish } = await generate(served, { ...answering.generation, onToken }, gone)
  const nothing = { ids: new Int32Array(0), logprobs: new Float32Array(0) }
  send({ ...answering, text: decoder.end(), ...nothing, finish: finish.kind })
}

function toCompletion(served: Served, part: Part): unknown {
  const { id, fields, text, ids, logprobs, finish, generation } = part
  const wantsLogprobs = typeof fields.logprobs === 'number'
  return {
    id,
    object: 'text_completion',
    model: served.name,
    choices: [
      {
        index: 0,
        text,
        finish_reason: finish,
        logprobs: wantsLogprobs
          ? {
              tokens: [...ids].map(each => served.tokenizer.decode([each])),
              token_logprobs: [...logprobs],
            }
          : null,
        ...tokenFields(fields, generation, ids, 'token_ids'),
      },
    ],
    usage: usageOf(generation, ids),
    metadata: { weight_version: served.weights() },
  }
}

function toChat(
  served: Served,
  part: Part & Pick<Reply, 'message' | 'calls'>,
  key: 'message' | 'delta',
): unknown {
  const { id, fields, ids, logprobs, finish, generation, message, calls } = part
  const isCall = finish === 'stop' && calls.length > 0
  return {
    id,
    object: key === 'delta' ? 'chat.completion.chunk' : 'chat.completion',
    model: served.name,
    choices: [
      {
        index: 0,
        [key]: message,
        finish_reason: isCall ? 'tool_calls' : finish,
        logprobs: flagIn(fields, 'logprobs')
          ? {
              content: [...ids].map((each, index) => ({
                token: served.tokenizer.decode([each]),
                logprob: logprobs[index],
                bytes: null,
                top_logprobs: [],
              })),
            }
          : null,
        ...tokenFields(fields, generation, ids, 'response_token_ids'),
      },
    ],
    usage: usageOf(generation, ids),
    metadata: { weight_version: served.weights() },
  }
}

function tokenFields(
  fields: Fields,
  { prompt }: Generation,
  ids: Int32Array,
  name: string,
): object {
  const isAsked = flagIn(fields, 'return_token_ids')
  const wantsPrompt = isAsked || flagIn(fields, 'return_prompt_token_ids')
  return {
    ...(isAsked && { [name]: [...ids] }),
    ...(wantsPrompt && { prompt_token_ids: [...prompt] }),
  }
}

function usageOf({ prompt }: Generation, ids: Int32Array): object {
  return {
    prompt_tokens: prompt.length,
    completion_tokens: ids.length,
    total_tokens: prompt.length + ids.length,
  }
}
