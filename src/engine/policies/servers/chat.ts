import type { Message, ToolDefinition } from '@espalier/text'
import type { Call } from '../../../base/core/call.ts'
import type { PromptImages } from '../../../base/core/image.ts'
import type { PolicyDescription, Sampling } from '../../../base/core/policy.ts'
import { parseJson } from '../transport/reading.ts'
import { ServerError } from '../transport/server-error.ts'
import { ask } from './ask.ts'
import { type ChatAnswer, readChatAnswer } from './chat-answer.ts'
import { withImageData } from './image-data.ts'
import { describeModel, firstModel } from './model-card.ts'
import { openServer, type ServerOptions } from './server.ts'
import { withSession } from './session-key.ts'

/** How to reach a chat server. */
export interface ChatOptions extends ServerOptions {
  /** The model's name there. @default the first one that the server lists */
  readonly servedModel?: string
}

/** One request to a chat server. */
export interface ChatRequest {
  readonly messages: readonly Message[]
  /** The images that they show. */
  readonly images?: PromptImages | undefined
  readonly tools: readonly ToolDefinition[]
  readonly sampling: Sampling
  readonly maxTokens: number
  readonly seed: number
  readonly stopStrings: readonly string[]
  /** The path behind the messages; empty if there is none. */
  readonly prompt: Int32Array
  /** Whose it is, for routers. @default nobody's */
  readonly session?: string
}

/** A chat-completions server. */
export interface Chat extends AsyncDisposable {
  readonly url: string
  say(request: ChatRequest, call: Call): Promise<ChatAnswer>
  /** The model's name there, and its context if the server tells it. */
  describe(call: Call): Promise<PolicyDescription>
}

/** What a server turned out to understand. */
interface Dialect {
  /** Knows `top_k` and `min_p`, and gives token ids if it can. */
  readonly isExtended: boolean
  readonly limit: 'max_tokens' | 'max_completion_tokens'
}

const path = '/chat/completions'

/** Opens any server that speaks OpenAI's chat completions; its base URL ends in `/v1` or the like. */
export function openChat(url: string, options: ChatOptions = {}): Chat {
  const server = openServer(withVersion(url), options)
  let dialect: Dialect = { isExtended: true, limit: 'max_tokens' }
  const where = `POST ${server.url}${path}`
  let model: Promise<string> | undefined

  function modelName(call: Call): Promise<string> {
    if (options.servedModel !== undefined) return Promise.resolve(options.servedModel)
    model ??= firstModel(server, call).catch(cause => {
      model = undefined
      throw cause
    })
    return model
  }

  return {
    url: server.url,
    describe: async call => describeModel(server, await modelName(call), call),
    async say(request, call) {
      call.signal.throwIfAborted()
      const name = await modelName(call)
      const messages = await withImageData(request.messages, request.images)
      let used = dialect
      for (;;) {
        try {
          const body = JSON.stringify(bodyOf({ ...request, messages }, name, used))
          const told = withSession({ path, body }, request.session, options)
          const answer = parseJson(await ask(server, told, call), where)
          dialect = used
          return readChatAnswer(answer, where, request.prompt)
        } catch (cause) {
          const simpler = simplified(used, cause)
          if (!simpler) throw cause
          used = simpler
        }
      }
    },
    [Symbol.asyncDispose]: () => server[Symbol.asyncDispose](),
  }
}

function withVersion(url: string): string {
  const isBare = URL.canParse(url) && new URL(url).pathname === '/'
  return isBare ? `${url.replace(/\/$/, '')}/v1` : url
}

/** All sampling fields are stated; those that only some servers know are left out for servers that refuse them. */
function bodyOf(request: ChatRequest, model: string, dialect: Dialect): object {
  const { sampling, tools, stopStrings } = request
  if (!dialect.isExtended && (sampling.topK !== 0 || sampling.minP !== 0)) {
    throw new Error(
      `This server does not know top_k and min_p, so topK must be 0 and minP 0, got ` +
        `${sampling.topK} and ${sampling.minP}.`,
    )
  }
  const extensions = {
    top_k: sampling.topK === 0 ? -1 : sampling.topK,
    min_p: sampling.minP,
    repetition_penalty: 1,
    logprobs: true,
    return_token_ids: true,
    return_prompt_token_ids: true,
  }
  return {
    model,
    messages: request.messages,
    ...(tools.length === 0 ? {} : { tools }),
    temperature: sampling.temperature,
    top_p: sampling.topP,
    presence_penalty: 0,
    frequency_penalty: 0,
    seed: request.seed,
    n: 1,
    [dialect.limit]: request.maxTokens,
    ...(stopStrings.length === 0 ? {} : { stop: stopStrings }),
    stream: false,
    ...(dialect.isExtended ? extensions : {}),
  }
}

const extensionWords =
  /top_k|min_p|repetition_penalty|token_ids|logprobs|unknown|unrecogni[sz]ed|unexpected|not permitted|extra/i

/** What to try after a refusal, if there is something simpler. */
function simplified(dialect: Dialect, cause: unknown): Dialect | undefined {
  if (!(cause instanceof ServerError)) return undefined
  if (cause.status !== 400 && cause.status !== 422) return undefined
  const { message } = cause
  if (dialect.limit === 'max_tokens' && message.includes('max_completion_tokens')) {
    return { ...dialect, limit: 'max_completion_tokens' }
  }
  if (!dialect.isExtended || !extensionWords.test(message)) return undefined
  return { ...dialect, isExtended: false }
}
