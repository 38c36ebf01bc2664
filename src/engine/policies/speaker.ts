import { createHash } from 'node:crypto'
import type { Message, Renderer, ToolDefinition } from '@espalier/text'
import { type Policy, plainSampling, type Sample, type SampleKey } from '../../base/core/policy.ts'
import type { SpeakCall, Speaker, Speech } from '../../base/core/speaker.ts'
import { type ChatOptions, openChat } from './servers/chat.ts'

/** How a speaker speaks. */
export interface SpeakerOptions {
  /** @default the policy's name */
  readonly name?: string
}

/**
 * A speaker made of a renderer and a policy. Requests are keyed by the conversation itself, so that a
 * replay finds recorded answers in whatever order they are needed.
 */
export function speakerOf(
  renderer: Renderer,
  policy: Policy,
  options: SpeakerOptions = {},
): Speaker {
  const { name = policy.name } = options
  return {
    name,
    async say(messages, call) {
      const { temperature, maxTokens, seed, tools } = speaking(call)
      const key = keyOf(name, messages)
      const sample = await policy.sample(
        {
          prompt: { ids: renderer.render(messages, tools), messages, tools },
          maxTokens,
          sampling: { ...plainSampling, temperature },
          stopIds: renderer.stopIds,
          stopStrings: [],
          seed,
          key,
          session: `${name}/${key.branch}`,
        },
        call,
      )
      call.signal.throwIfAborted()
      return toSpeech(sample, { renderer, tools, turn: key.turn })
    },
  }
}

/** A speaker behind a chat-completions server. */
export function chatSpeaker(
  url: string,
  options: ChatOptions & SpeakerOptions = {},
): Speaker & AsyncDisposable {
  const chat = openChat(url, options)
  const { name = `openai:${chat.url}` } = options
  return {
    name,
    async say(messages, call) {
      const { temperature, maxTokens, seed, tools } = speaking(call)
      const { message, finish, promptTokens, sampledTokens } = await chat.say(
        {
          messages,
          tools,
          sampling: { ...plainSampling, temperature },
          maxTokens,
          seed,
          stopStrings: [],
          prompt: new Int32Array(0),
        },
        call,
      )
      const usage = { prompt: promptTokens, sampled: sampledTokens }
      return { message, finish: finish.kind === 'length' ? 'length' : 'stop', usage }
    },
    [Symbol.asyncDispose]: () => chat[Symbol.asyncDispose](),
  }
}

function speaking(call: SpeakCall): Required<Omit<SpeakCall, 'signal'>> {
  return { temperature: 0, maxTokens: 1024, seed: 0, tools: [], ...call }
}

function keyOf(name: string, messages: readonly Message[]): SampleKey {
  const branch = createHash('sha256').update(JSON.stringify(messages)).digest('hex').slice(0, 16)
  const turn = messages.filter(({ role }) => role === 'assistant').length
  return { task: name, member: 0, branch, turn }
}

interface Parsing {
  readonly renderer: Renderer
  readonly tools: readonly ToolDefinition[]
  readonly turn: number
}

function toSpeech(sample: Sample, { renderer, tools, turn }: Parsing): Speech {
  if (sample.finish.kind === 'abort') {
    throw new Error('The policy aborted the speaker in mid-sentence, though nobody asked it to.')
  }
  const message =
    sample.kind === 'text'
      ? sample.message
      : renderer.parse(sample.segment.ids, tools, turn).message
  const { prompt, sampled } = sample.usage
  const finish = sample.finish.kind === 'length' ? 'length' : 'stop'
  return { message, finish, usage: { prompt, sampled } }
}
