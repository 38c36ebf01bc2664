import type { Message, Renderer } from '@espalier/text'
import { describe, expect, it } from 'vitest'
import { openOpenAiChatServer } from '../../../test/servers/openai-chat.ts'
import { scripted } from './scripted.ts'
import { chatSpeaker, speakerOf } from './speaker.ts'

const encode = (text: string): Int32Array => Int32Array.from(Buffer.from(text))
const decode = (ids: Int32Array): string => Buffer.from(Uint8Array.from(ids)).toString()
const call = () => ({ signal: AbortSignal.timeout(50_000) })

/** Bytes, one message per line. */
const bytes: Renderer = {
  name: 'bytes',
  history: 'preserve',
  stopIds: [10],
  vocabulary: 256,
  render: messages => encode(messages.map(({ role, content }) => `${role}: ${content}\n`).join('')),
  bridge: () => ({ kind: 'extends', ids: new Int32Array(0) }),
  parse: ids => ({ message: { role: 'assistant', content: decode(ids).trim() }, calls: [] }),
  encodeReply: () => new Int32Array(0),
  decode,
}

const question: readonly Message[] = [{ role: 'user', content: 'How many?' }]

describe('speakerOf', () => {
  it('renders, samples greedily and parses', async () => {
    const policy = scripted(['four'], { encode })
    const speaker = speakerOf(bytes, policy)
    const speech = await speaker.say(question, call())
    expect(speech).toEqual({
      message: { role: 'assistant', content: 'four' },
      finish: 'stop',
      usage: { prompt: 16, sampled: 5 },
    })
    const [request] = policy.requests
    expect(decode(request!.prompt.ids)).toBe('user: How many?\n')
    expect(request).toMatchObject({ maxTokens: 1024, seed: 0, sampling: { temperature: 0 } })
  })

  it('[S1] asks by what was said, not by when', async () => {
    const policy = scripted(['first', 'second'], { encode })
    const speaker = speakerOf(bytes, policy, { name: 'judge' })
    const later: readonly Message[] = [
      ...question,
      { role: 'assistant', content: 'first' },
      { role: 'user', content: 'And now?' },
    ]
    expect((await speaker.say(later, call())).message.content).toBe('second')
    expect((await speaker.say(question, call())).message.content).toBe('first')
    const [one, two] = policy.requests.map(({ key }) => key)
    expect(one).toMatchObject({ task: 'judge', turn: 1 })
    expect(two).toMatchObject({ task: 'judge', turn: 0 })
    expect(one!.branch).not.toBe(two!.branch)
  })

  it('says when an answer was cut', async () => {
    const speaker = speakerOf(bytes, scripted(['a long answer'], { encode }))
    const speech = await speaker.say(question, { ...call(), maxTokens: 6 })
    expect(speech).toMatchObject({ finish: 'length', message: { content: 'a long' } })
  })
})

describe('chatSpeaker', () => {
  it('asks a chat server', async () => {
    await using server = await openOpenAiChatServer({
      answer: () => ({ ids: [1, 2], logprobs: [0, 0], finish: 'stop', text: 'four' }),
    })
    await using speaker = chatSpeaker(server.url, { servedModel: 'judge' })
    const speech = await speaker.say(question, { ...call(), temperature: 0.5, seed: 3 })
    expect(speech).toEqual({
      message: { role: 'assistant', content: 'four' },
      finish: 'stop',
      usage: { prompt: 9, sampled: 2 },
    })
    expect(server.seen[0]!.body).toMatchObject({
      model: 'judge',
      messages: question,
      temperature: 0.5,
      seed: 3,
      max_tokens: 1024,
    })
  })
})
