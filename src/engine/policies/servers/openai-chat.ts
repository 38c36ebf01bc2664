import type { Policy, Sample, SampleRequest, SampleUsage } from '../../../base/core/policy.ts'
import { type Clock, systemClock } from '../../../base/core/process/clock.ts'
import { withoutSecretsIn } from '../../../base/core/process/secrets.ts'
import type { VersionRange } from '../../../base/core/segment.ts'
import { toTokenSample } from '../sample.ts'
import { makeVersions, type Versions, versionRange } from '../versions.ts'
import { type ChatOptions, type ChatRequest, openChat } from './chat.ts'
import type { ChatAnswer } from './chat-answer.ts'

/** How to use a chat server as a policy. */
export interface OpenAiChatOptions extends ChatOptions {
  /** Shared by the servers of one policy, so that equal names give equal versions. */
  readonly versions?: Versions
  readonly clock?: Clock
}

/**
 * Opens a policy behind any chat-completions server. Its answers are messages, to be encoded and
 * marked so, unless the server gives token ids and read exactly the prompt that was meant.
 */
export function openOpenAiChat(url: string, options: OpenAiChatOptions = {}): Policy {
  const chat = openChat(url, options)
  const { clock = systemClock, versions = makeVersions() } = options
  return {
    name: `openai:${chat.url}`,
    capabilities: {
      ids: false,
      logprobs: false,
      basis: 'raw',
      topLogprobs: 0,
      entropies: false,
      images: true,
      score: false,
      several: false,
      abort: false,
      seed: true,
      version: false,
      stream: false,
    },
    async sample(request, call) {
      const time = clock.now()
      const before = versions.latest
      const answer = await chat.say(toChat(request), call)
      const seconds = (clock.now() - time) / 1000
      const version = versionRange(before, versions.read(answer.weights))
      return toSample(answer, { version, seconds, sent: request.prompt.ids.length })
    },
    describe: call => chat.describe(call),
    [Symbol.asyncDispose]: () => chat[Symbol.asyncDispose](),
  }
}

function toChat(request: SampleRequest): ChatRequest {
  const { prompt, sampling, maxTokens, seed, stopStrings, session } = request
  const { messages, tools, ids, images } = prompt
  return { messages, images, tools, sampling, maxTokens, seed, stopStrings, prompt: ids, session }
}

interface Circumstances {
  readonly version: VersionRange
  readonly seconds: number
  readonly sent: number
}

function toSample(answer: ChatAnswer, { version, seconds, sent }: Circumstances): Sample {
  const { message, finish, tokens } = answer
  const usage: SampleUsage = {
    prompt: answer.promptTokens || sent,
    sampled: tokens?.ids.length ?? answer.sampledTokens,
    seconds,
    ...(answer.cachedTokens === undefined ? {} : { cached: answer.cachedTokens }),
  }
  if (!tokens) return { kind: 'text', message: withoutSecretsIn(message), version, finish, usage }
  return toTokenSample({ ...tokens, basis: 'raw', version, finish, usage })
}
