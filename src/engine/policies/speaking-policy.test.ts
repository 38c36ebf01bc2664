import type { Message } from '@espalier/text'
import { expect, it } from 'vitest'
import type { SampleRequest } from '../../base/core/policy.ts'
import { functionSpeaker, speakingPolicy } from './speaking-policy.ts'

it('a player may do with the conversation it is given whatever it likes', async () => {
  const player = functionSpeaker('greedy', messages =>
    String((messages as Message[]).splice(0).length),
  )
  const messages: readonly Message[] = [{ role: 'user', content: 'How many?' }]
  const request = { prompt: { messages, ids: new Int32Array(0) }, sampling: {}, maxTokens: 8 }
  const { signal } = new AbortController()
  const sample = await speakingPolicy(player).sample(request as unknown as SampleRequest, {
    signal,
  })
  expect(sample).toMatchObject({ kind: 'text', message: { content: '1' } })
  expect(messages).toEqual([{ role: 'user', content: 'How many?' }])
})
