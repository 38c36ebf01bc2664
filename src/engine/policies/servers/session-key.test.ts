import { expect, it } from 'vitest'
import { openLlamaCppServer } from '../../../../test/servers/llama-cpp.ts'
import { openOpenAiChatServer } from '../../../../test/servers/openai-chat.ts'
import type { Seen, Serving } from '../../../../test/servers/serving.ts'
import { openSglangServer } from '../../../../test/servers/sglang.ts'
import { openVllmServer } from '../../../../test/servers/vllm.ts'
import { plainSampling, type SampleRequest } from '../../../base/core/policy.ts'
import { openPolicy } from '../open-policy.ts'
import { withSession } from './session-key.ts'

const request: SampleRequest = {
  prompt: { ids: Int32Array.of(1, 2), messages: [{ role: 'user', content: 'a' }], tools: [] },
  maxTokens: 4,
  sampling: plainSampling,
  stopIds: [],
  stopStrings: [],
  seed: 1,
  key: { task: 't', member: 0, branch: '', turn: 0 },
  session: 'köln/3',
}

const kinds: Readonly<Record<string, () => Promise<Serving>>> = {
  vllm: () => openVllmServer(),
  sglang: () => openSglangServer(),
  'llama-cpp': () => openLlamaCppServer(),
  openai: () => openOpenAiChatServer(),
}

it.each(Object.entries(kinds))(
  '%s tells routers the session of every sample',
  async (kind, open) => {
    const call = { signal: AbortSignal.timeout(10_000) }
    await using server = await open()
    for (const parameter of ['', '?session=x-dynamo-session-id', '?session=body:nvext.session']) {
      await using policy = await openPolicy(`${kind}:${server.url}${parameter}`, { thread: false })
      await policy.sample(request, call)
    }
    const asked = server.seen.filter(({ body }: Seen) => body !== undefined)
    expect(asked[0]?.headers['x-session-id']).toBe('k%C3%B6ln%2F3')
    expect(asked[1]?.headers).toMatchObject({ 'x-dynamo-session-id': 'k%C3%B6ln%2F3' })
    expect(asked[1]?.headers['x-session-id']).toBeUndefined()
    expect(asked[2]?.body.nvext).toEqual({ session: 'k%C3%B6ln%2F3' })
  },
)

it('says nothing of a session that has no name', () => {
  const sent = { path: '/', body: '{"a":1}' }
  expect(withSession(sent, '', {})).toBe(sent)
})

it('refuses what names neither a header nor a field', async () => {
  await expect(openPolicy('vllm:http://x?session=a b')).rejects.toThrow('session is the name of')
})
