import { randomUUID } from 'node:crypto'
import { openGrowingText } from '../../../base/core/process/growing-text.ts'
import {
  type Fields,
  flagIn,
  numberIn,
  refuseUnlessNeutral,
  textIn,
  textsIn,
  toFields,
} from '../../../engine/capture/dialects/fields.ts'
import { RequestProblem } from '../../../engine/capture/dialects/problem.ts'
import type { TokenNews } from '../../../learn/model/protocol.ts'
import type { Door } from '../../door/door.ts'
import type { Reply } from '../../door/reply.ts'
import type { DoorRequest } from '../../door/request.ts'
import { abortWhenGone } from '../answer-http.ts'
import { type Generated, type Generation, generate, type Served, textOfIds } from './generation.ts'
import { toIds } from './ids.ts'
import { sendEvents } from './stream.ts'

/** Adds OpenAI's completions, with token ids for who asks for them. */
export function addCompletions(door: Door, served: Served): void {
  door.post('/v1/completions', (request, reply) => complete(served, request, reply))
}

interface Answering {
  readonly id: string
  readonly fields: Fields
  readonly generation: Generation
}

async function complete(served: Served, request: DoorRequest, reply: Reply): Promise<unknown> {
  const fields = toFields(await request.json(), 'the body')
  const { prompt } = fields
  const ids =
    typeof prompt === 'string'
      ? served.tokenizer.encode(prompt)
      : toIds(prompt, 'prompt', served.model.shape.vocabulary)
  const generation = readGeneration(served, fields, { prompt: ids, maxTokens: 16 })
  const gone = abortWhenGone(reply).signal
  const answering = { id: `cmpl-${randomUUID()}`, fields, generation }
  if (flagIn(fields, 'stream')) {
    return await sendEvents(reply, send =>
      streamText(served, answering, { gone, send: part => send(toCompletion(served, part)) }),
    )
  }
  return toCompletion(served, toPart(served, answering, await generate(served, generation, gone)))
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
  refuseUnlessNeutral(fields, impossible)
  const { context } = served.model.shape
  if (prompt.length === 0 || prompt.length >= context) {
    throw new RequestProblem(
      'context',
      `The prompt has ${prompt.length} tokens; this model's context length is ${context} tokens.`,
    )
  }
  const whole = { whole: true, low: 0 } as const
  const asked = numberIn(fields, 'max_completion_tokens', { ...whole, low: 1 })
  const rid = textIn(fields, 'rid')
  const seed = numberIn(fields, 'seed', { ...whole })
  return {
    ...(rid !== undefined && { rid }),
    prompt,
    maxTokens: asked ?? numberIn(fields, 'max_tokens', { ...whole, low: 1 }) ?? maxTokens,
    sampling: {
      temperature: numberIn(fields, 'temperature', { low: 0, high: 1000 }) ?? 1,
      topP: numberIn(fields, 'top_p', { low: Number.MIN_VALUE, high: 1 }) ?? 1,
      topK: Math.max(0, numberIn(fields, 'top_k', { low: -1, whole: true }) ?? 0),
      minP: numberIn(fields, 'min_p', { low: 0, high: 1 }) ?? 0,
    },
    stopIds: [
      ...(flagIn(fields, 'ignore_eos') ? [] : served.stopIds),
      ...toIds(fields.stop_token_ids ?? [], 'stop_token_ids', Number.MAX_SAFE_INTEGER),
    ],
    stopStrings: textsIn(fields, 'stop') ?? [],
    ...(seed !== undefined && { seed }),
    topLogprobs: numberIn(fields, 'top_logprobs', { ...whole, high: 20 }) ?? 0,
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
  const keepsStop = flagIn(answering.fields, 'no_stop_trim') ?? false
  const skipSpecial = flagIn(answering.fields, 'skip_special_tokens') ?? true
  const text = textOfIds(served, ids, { keepsStop, skipSpecial })
  return { ...answering, text, ids, logprobs, finish: finish.kind }
}

async function streamText(
  served: Served,
  answering: Answering,
  { gone, send }: { readonly gone: AbortSignal; readonly send: (part: Part) => void },
): Promise<void> {
  const decoder = served.tokenizer.makeDecoder({
    skipSpecial: flagIn(answering.fields, 'skip_special_tokens') ?? true,
  })
  const growing = openGrowingText()
  const onToken = ({ id, logprob }: TokenNews): void => {
    const ids = Int32Array.of(id)
    const text = growing.add(decoder.push(ids))
    send({ ...answering, text, ids, logprobs: Float32Array.of(logprob), finish: null })
  }
  const { finish } = await generate(served, { ...answering.generation, onToken }, gone)
  const nothing = { ids: new Int32Array(0), logprobs: new Float32Array(0) }
  const text = growing.add(decoder.end()) + growing.end()
  send({ ...answering, text, ...nothing, finish: finish.kind })
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
        ...tokenFields(fields, generation, ids),
      },
    ],
    usage: usageOf(generation, ids),
    metadata: { weight_version: served.weights() },
  }
}

function tokenFields(fields: Fields, { prompt }: Generation, ids: Int32Array): object {
  const isAsked = flagIn(fields, 'return_token_ids')
  const wantsPrompt = isAsked || flagIn(fields, 'return_prompt_token_ids')
  return {
    ...(isAsked && { token_ids: [...ids] }),
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
