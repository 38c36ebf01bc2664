import { describe, expect, it } from 'vitest'
import {
  type OpenAiChatServerOptions,
  openOpenAiChatServer,
} from '../../../../test/servers/openai-chat.ts'
import { faults } from '../../../../test/servers/serving.ts'
import { openStage, statedSampling } from '../../../../test/servers/staged.ts'
import {
  describePolicy,
  expectTokens,
  type PolicySubject,
  sampleRequest,
} from '../../../base/core/conformance/policy.conformance.ts'
import { plainSampling } from '../../../base/core/policy.ts'
import { openOpenAiChat } from './openai-chat.ts'

const subject: PolicySubject = {
  name: 'openai-chat',
  // Its answers carry no numbers that could be wrong.
  faults: faults.filter(fault => !['lengths', 'nan', 'null'].includes(fault)),
  open: scene =>
    openStage(scene, {
      serve: openOpenAiChatServer,
      connect: openOpenAiChat,
      stated: body => ({
        maxTokens: body.max_tokens,
        seed: body.seed,
        sampling: statedSampling(body),
      }),
    }),
}

describePolicy(subject)

describe('openai-chat', () => {
  const call = () => ({ signal: AbortSignal.timeout(50_000) })
  const { ids } = sampleRequest().prompt
  const answer = () => ({ ids: [7, 2], logprobs: [-1, -2], finish: 'stop' as const, text: 'x' })
  const open = (options: OpenAiChatServerOptions = {}) =>
    openOpenAiChatServer({ answer, ...options })

  it('gives tokens where the server does and read the very prompt', async () => {
    await using server = await open({ render: () => [...ids] })
    await using policy = openOpenAiChat(server.url)
    const { segment } = expectTokens(await policy.sample(sampleRequest(), call()))
    expect([...segment.ids]).toEqual([7, 2])
    expect(segment.logprobs).toEqual(Float32Array.of(-1, -2))
    expect(segment.basis).toBe('raw')
  })

  it('gives text where the server rendered another prompt', async () => {
    await using server = await open({ render: () => [...ids, 1] })
    await using policy = openOpenAiChat(server.url)
    expect((await policy.sample(sampleRequest(), call())).kind).toBe('text')
  })

  it('refuses tokens whose log-probabilities do not match', async () => {
    await using server = await open({ render: () => [...ids], fault: () => 'lengths' })
    await using policy = openOpenAiChat(server.url)
    await expect(policy.sample(sampleRequest(), call())).rejects.toThrow('2 ids but')
  })

  it('speaks plainly to a server that knows nothing more, and remembers it', async () => {
    await using server = await open({ isStrict: true })
    await using policy = openOpenAiChat(server.url)
    await policy.sample(sampleRequest(), call())
    await policy.sample(sampleRequest({ maxTokens: 5 }), call())
    const bodies = server.seen.filter(({ body }) => body).map(({ body }) => body)
    expect(bodies.length).toBe(4)
    expect(bodies[3]).toMatchObject({ max_completion_tokens: 5, temperature: 1, top_p: 1 })
    const sampling = { ...plainSampling, topK: 20 }
    await expect(policy.sample(sampleRequest({ sampling }), call())).rejects.toThrow(
      'topK must be 0',
    )
  })

  it('sends messages and tools as they are, and reads calls', async () => {
    const tool = {
      type: 'function',
      function: { name: 'add', description: 'Adds.', parameters: { type: 'object' } },
    } as const
    const made = { id: 'c1', type: 'function', function: { name: 'add', arguments: '{"a":1}' } }
    await using server = await open({ toolCalls: [made] })
    await using policy = openOpenAiChat(server.url, { servedModel: 'mine' })
    const prompt = { ...sampleRequest().prompt, tools: [tool] }
    const sample = await policy.sample(sampleRequest({ prompt, stopStrings: ['\n'] }), call())
    expect(sample).toMatchObject({
      kind: 'text',
      finish: { kind: 'stop' },
      message: { role: 'assistant', content: null, tool_calls: [made] },
      usage: { prompt: 9, sampled: 2 },
    })
    expect(server.seen[0]!.body).toMatchObject({
      model: 'mine',
      messages: prompt.messages,
      tools: [tool],
      stop: ['\n'],
    })
  })
})
