import { realpathSync } from 'node:fs'
import { sep } from 'node:path'
import { setImmediate } from 'node:timers/promises'
import { withoutSecretsSoFar } from '../../../base/core/process/growing-text.ts'
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
import {
  abortRunning,
  type Generated,
  type Generation,
  generate,
  type Served,
  textOfIds,
} from './generation.ts'
import { toIds } from './ids.ts'
import { sendEvents } from './stream.ts'

/** Adds SGLang's routes to a door. */
export function addSglangRoutes(door: Door, served: Served): void {
  const answer = (request: DoorRequest, reply: Reply): Promise<unknown> =>
    answerGenerate(served, request, reply)
  door.on(['POST', 'PUT'], '/generate', answer)
  door.post('/abort_request', async request => {
    const fields = toFields((await request.json()) ?? {}, 'the body')
    abortRunning(served, flagIn(fields, 'abort_all') ? '' : (textIn(fields, 'rid') ?? '\0'))
  })
  for (const path of ['/health', '/health_generate']) {
    door.get(path, () => undefined)
  }
  for (const path of ['/model_info', '/get_model_info']) {
    door.get(path, async () => ({
      model_path: served.folder,
      tokenizer_path: served.folder,
      served_model_name: served.name,
      is_generation: true,
      weight_version: served.weights(),
      model_type: 'llama',
      architectures: ['LlamaForCausalLM'],
    }))
  }
  for (const path of ['/server_info', '/get_server_info']) {
    door.get(path, async () => ({
      model_path: served.folder,
      context_length: served.model.shape.context,
      internal_states: [{ num_running_reqs: served.running.size }],
    }))
  }
  door.on(['GET', 'POST'], '/flush_cache', { changesNothing: true }, () => 'Cache flushed.')
  door.post('/update_weights_from_disk', (request, reply) => updateWeights(served, request, reply))
}

async function updateWeights(served: Served, request: DoorRequest, reply: Reply): Promise<unknown> {
  const fields = toFields(await request.json(), 'the body')
  const path = textIn(fields, 'model_path')
  if (path === undefined) throw new RequestProblem('invalid', 'model_path is missing')
  if (flagIn(fields, 'abort_all_requests')) abortRunning(served, '')
  try {
    await served.model.load(allowedFolder(path, served.weightFolders))
  } catch (cause) {
    reply.status = 400
    return { success: false, message: (cause as Error).message, num_paused_requests: 0 }
  }
  served.renameWeights(textIn(fields, 'weight_version'))
  return { success: true, message: 'Succeeded to update model weights.', num_paused_requests: 0 }
}

/** The folder's real path, so that no symbolic link leads out of the allowed ones. */
function allowedFolder(path: string, folders: readonly string[]): string {
  const real = (each: string): string | undefined => {
    try {
      return realpathSync(each)
    } catch {
      return undefined
    }
  }
  const wanted = real(path)
  const isInside = (folder: string): boolean => {
    const root = real(folder)
    return root !== undefined && (wanted === root || wanted?.startsWith(`${root}${sep}`) === true)
  }
  if (wanted !== undefined && folders.some(isInside)) return wanted
  throw new Error('weights are taken only from the folders that the server was started with')
}

/** How answers are to be written. */
interface Wanted {
  readonly generation: Generation
  readonly hasLogprobs: boolean
  readonly hasTexts: boolean
  /** From which prompt token on log-probabilities are wanted; -1: none. */
  readonly startLength: number
  readonly keepsStop: boolean
  readonly skipSpecial: boolean
}

async function answerGenerate(
  served: Served,
  request: DoorRequest,
  reply: Reply,
): Promise<unknown> {
  const fields = toFields(await request.json(), 'the body')
  const gone = abortWhenGone(reply).signal
  const wanted = readWanted(served, fields)
  if (!flagIn(fields, 'stream')) {
    const answers = await Promise.all(
      wanted.map(async one => toAnswer(served, one, await generate(served, one.generation, gone))),
    )
    return isBatch(fields) || wanted.length > 1 ? answers : answers[0]
  }
  if (wanted.length > 1)
    throw new RequestProblem('invalid', 'a batch cannot be streamed; ask one by one')
  return await sendEvents(reply, send => streamOne(served, wanted[0]!, { gone, send }))
}

/**
 * One event per token, so that guards see a sample grow here as they do in process; each repeats all
 * tokens so far, as SGLang does unless told otherwise. Between them other requests have their turn.
 */
async function streamOne(
  served: Served,
  wanted: Wanted,
  { gone, send }: { readonly gone: AbortSignal; readonly send: (event: unknown) => void },
): Promise<void> {
  const tokens: TokenNews[] = []
  let sent = 0
  let telling: Promise<void> | undefined
  let isOver = false
  const tell = async (): Promise<void> => {
    while (sent < tokens.length && !isOver) {
      const soFar = tokens.slice(0, ++sent)
      const part = toPart(served, wanted, {
        ids: Int32Array.from(soFar, ({ id }) => id),
        logprobs: Float32Array.from(soFar, ({ logprob }) => logprob),
        rid: wanted.generation.rid ?? '',
      })
      send({ ...part, text: withoutSecretsSoFar(part.text) })
      await setImmediate()
    }
    telling = undefined
  }
  const onToken = (token: TokenNews): void => {
    tokens.push(token)
    telling ??= tell()
  }
  try {
    const generated = await generate(served, { ...wanted.generation, onToken }, gone)
    isOver = generated.finish.kind === 'abort'
    await telling
    send(await toAnswer(served, wanted, generated))
  } finally {
    isOver = true
  }
}

function isBatch(fields: Fields): boolean {
  return Array.isArray(fields.text) || Array.isArray((fields.input_ids as unknown[] | null)?.[0])
}

function readWanted(served: Served, fields: Fields): readonly Wanted[] {
  const prompts = readPrompts(served, fields)
  const at = (name: string, index: number): unknown => {
    const value = fields[name]
    return Array.isArray(value) && isBatch(fields) ? value[index] : value
  }
  return prompts.flatMap((prompt, index) => {
    const parameters = toFields(at('sampling_params', index) ?? {}, 'sampling_params')
    const own = { ...fields, rid: at('rid', index) }
    const copies = numberIn(parameters, 'n', { low: 1, high: 256, whole: true }) ?? 1
    return Array.from({ length: copies }, (_, copy) =>
      readOne(served, own, { prompt, parameters, copy }),
    )
  })
}

function readPrompts({ tokenizer, model }: Served, fields: Fields): readonly Int32Array[] {
  const { text, input_ids: ids } = fields
  if ((text === undefined || text === null) === (ids === undefined || ids === null)) {
    throw new RequestProblem('invalid', 'give either text or input_ids')
  }
  if (ids === undefined || ids === null) {
    return (textsIn(fields, 'text') ?? []).map(each => tokenizer.encode(each))
  }
  const lists = isBatch(fields) ? (ids as unknown[]) : [ids]
  return lists.map(list => toIds(list, 'input_ids', model.shape.vocabulary))
}

const impossible = {
  min_new_tokens: 0,
  frequency_penalty: 0,
  presence_penalty: 0,
  repetition_penalty: 1,
  stop_regex: null,
  json_schema: null,
  regex: null,
  ebnf: null,
  structural_tag: null,
  logit_bias: null,
} as const

function readOne(
  served: Served,
  fields: Fields,
  from: { readonly prompt: Int32Array; readonly parameters: Fields; readonly copy: number },
): Wanted {
  const { prompt, parameters, copy } = from
  refuseUnlessNeutral(parameters, impossible)
  checkPrompt(served, prompt)
  const rid = textIn(fields, 'rid')
  const whole = { whole: true, low: 0 } as const
  const seed = numberIn(parameters, 'sampling_seed', { ...whole })
  return {
    generation: {
      ...(rid !== undefined && { rid }),
      prompt,
      // The protocol's own default.
      maxTokens: numberIn(parameters, 'max_new_tokens', { ...whole, low: 1 }) ?? 128,
      sampling: readSampling(parameters),
      stopIds: [
        ...(flagIn(parameters, 'ignore_eos') ? [] : served.stopIds),
        ...toIds(parameters.stop_token_ids ?? [], 'stop_token_ids', Number.MAX_SAFE_INTEGER),
      ],
      stopStrings: textsIn(parameters, 'stop') ?? [],
      ...(seed !== undefined && { seed: seed + copy }),
      topLogprobs: numberIn(fields, 'top_logprobs_num', { ...whole }) ?? 0,
    },
    hasLogprobs: flagIn(fields, 'return_logprob') ?? false,
    hasTexts: flagIn(fields, 'return_text_in_logprobs') ?? false,
    startLength: numberIn(fields, 'logprob_start_len', { ...whole, low: -1 }) ?? -1,
    keepsStop: flagIn(parameters, 'no_stop_trim') ?? false,
    skipSpecial: flagIn(parameters, 'skip_special_tokens') ?? true,
  }
}

function checkPrompt({ model }: Served, prompt: Int32Array): void {
  const { context } = model.shape
  if (prompt.length === 0) throw new RequestProblem('invalid', 'input_ids is empty')
  if (prompt.length < context) return
  throw new RequestProblem(
    'context',
    `The input (${prompt.length} tokens) is longer than the model's context length (${context} tokens).`,
  )
}

function readSampling(parameters: Fields): Generation['sampling'] {
  const temperature = numberIn(parameters, 'temperature', { low: 0, high: 1000 }) ?? 1
  const topK = numberIn(parameters, 'top_k', { low: -1, whole: true }) ?? -1
  return {
    temperature: temperature < 1e-6 ? 0 : temperature,
    topP: numberIn(parameters, 'top_p', { low: Number.MIN_VALUE, high: 1 }) ?? 1,
    topK: Math.max(0, topK),
    minP: numberIn(parameters, 'min_p', { low: 0, high: 1 }) ?? 0,
  }
}

async function toAnswer(served: Served, wanted: Wanted, generated: Generated): Promise<unknown> {
  const part = toPart(served, wanted, generated)
  const { generation, hasLogprobs, startLength } = wanted
  const { top, cachedTokens, seconds } = generated
  const isScored = hasLogprobs && startLength >= 0
  return {
    ...part,
    meta_info: {
      ...part.meta_info,
      finish_reason: toFinish(generated),
      cached_tokens: cachedTokens,
      e2e_latency: seconds,
      ...(hasLogprobs && top && { output_top_logprobs: toCandidates(top) }),
      ...(isScored && {
        input_token_logprobs: await scorePrompt(served, generation.prompt, startLength),
      }),
    },
  }
}

function toPart(
  served: Served,
  { generation, hasLogprobs, hasTexts, keepsStop, skipSpecial }: Wanted,
  { ids, logprobs, rid }: Pick<Generated, 'ids' | 'logprobs' | 'rid'>,
) {
  const text = (id: number): string | null => (hasTexts ? served.tokenizer.decode([id]) : null)
  return {
    text: textOfIds(served, ids, { keepsStop, skipSpecial }),
    output_ids: [...ids],
    meta_info: {
      id: rid,
      finish_reason: null as unknown,
      prompt_tokens: generation.prompt.length,
      completion_tokens: ids.length,
      weight_version: served.weights(),
      ...(hasLogprobs && {
        output_token_logprobs: [...ids].map((id, index) => [logprobs[index], id, text(id)]),
      }),
    },
  }
}

function toFinish({ finish, ids, matched }: Generated): unknown {
  if (finish.kind === 'stop') return { type: 'stop', matched: matched ?? ids.at(-1) }
  if (finish.kind === 'length') return { type: 'length', length: ids.length }
  return { type: 'abort', message: 'Abort in decode', status_code: null, err_type: null }
}

function toCandidates({ width, ids, logprobs }: NonNullable<Generated['top']>): unknown[] {
  const rows = width === 0 ? 0 : ids.length / width
  return Array.from({ length: rows }, (_, row) =>
    Array.from({ length: width }, (_, rank) => [
      logprobs[row * width + rank],
      ids[row * width + rank],
      null,
    ]),
  )
}

/** A prompt's own log-probabilities, at temperature 1 as SGLang gives them; the first has none. */
async function scorePrompt(
  { model }: Served,
  prompt: Int32Array,
  start: number,
): Promise<readonly unknown[]> {
  const from = Math.min(start, prompt.length - 1)
  const first = [null, prompt[from], null]
  if (from + 1 >= prompt.length) return [first]
  const { signal } = new AbortController()
  const { logprobs } = await model.score(prompt, from + 1, { temperature: 1 }, { signal })
  return [
    first,
    ...[...logprobs].map((logprob, index) => [logprob, prompt[from + 1 + index], null]),
  ]
}
