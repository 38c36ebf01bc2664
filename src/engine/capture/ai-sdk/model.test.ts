import { once } from 'node:events'
import { generateText, stepCountIs, tool } from 'ai'
import { describe, expect, it } from 'vitest'
import { z } from 'zod'
import { rollScript } from '../../../../test/roll-script.ts'
import { call, openByteRenderer, script } from '../../../../test/rolling.ts'
import { tokenSample } from '../../../../test/token-sample.ts'
import type { Policy } from '../../../base/core/policy.ts'
import { roll } from '../../../run/run/roll.ts'
import { type AgentFunction, plainAgent } from '../agent.ts'

const renderer = await openByteRenderer()

describe('the model for the AI SDK', () => {
  it("reads images in a tool's answer as images, and leaves nothing of it out", async () => {
    const png = { data: 'AAAA', mediaType: 'image/png' }
    const answers = [
      { type: 'media' as const, ...png },
      { type: 'image-data' as const, ...png },
      { type: 'file-data' as const, data: 'AAAA', mediaType: 'application/pdf' },
    ]
    const outcomes = answers.map(async part => {
      const shoot = tool({
        inputSchema: z.object({}),
        execute: () => 'taken',
        toModelOutput: () => ({ type: 'content', value: [part] }),
      })
      const shooting: AgentFunction = async ({ model }) =>
        (await generateText({ model, prompt: 'Go.', tools: { shoot }, stopWhen: stepCountIs(3) }))
          .text
      const rolled = rollScript(shooting, [call('shoot', {}), 'A door.'])
      return await rolled.then(() => 'answered', String)
    })
    expect(await Promise.all(outcomes)).toEqual([
      expect.stringContaining('messages[2] has an image'),
      expect.stringContaining('messages[2] has an image'),
      expect.stringContaining('a part of type file-data application/pdf'),
    ])
  })

  it('[O1] stops what is sampled for a stream when its reader leaves, and keeps it as a cut turn', async () => {
    const body = JSON.stringify({ messages: [{ role: 'user', content: 'Go.' }], stream: true })
    const prompt = [{ role: 'user' as const, content: [{ type: 'text', text: 'Go.' }] }]
    const readers: AgentFunction<unknown, ReadableStream<unknown>>[] = [
      async ({ model }) => (await model.doStream({ prompt })).stream,
      async ({ fetch }) => {
        const asked = await fetch('https://any/v1/chat/completions', { method: 'POST', body })
        return asked.body!
      },
    ]
    for (const read of readers) {
      const { policy, stopped } = waitingPolicy('The door')
      const leaving = plainAgent('leaving', async agentCall => {
        await leave(await read(agentCall))
        await stopped
        return 1
      })
      const options = { policy, model: renderer, group: 1 }
      for await (const { members } of roll(leaving, [{}], options)) {
        const { messages, outcome, turns } = members[0]!.trajectory
        expect(outcome).toEqual({ kind: 'completed' })
        expect(messages.at(-1)).toMatchObject({ role: 'assistant', content: 'The door' })
        expect(turns[0]!.finish).toEqual({ kind: 'abort' })
      }
    }
  })
})

/** Reads the first pieces of a stream, and cancels it. */
async function leave(stream: ReadableStream<unknown>): Promise<void> {
  const reader = stream.getReader()
  await reader.read()
  await reader.read()
  await reader.cancel()
}

/** Says these words as a stream, and then nothing until it is stopped. */
function waitingPolicy(words: string) {
  const silent = script(renderer, [])
  const ids = renderer.tokenizer.encode(words)
  let stop: () => void = () => {}
  const stopped = new Promise<void>(resolve => {
    stop = resolve
  })
  const policy: Policy = {
    ...silent,
    capabilities: { ...silent.capabilities, abort: true },
    async sample({ prompt, watch }, { signal }) {
      watch?.({ ids: ids.subarray(0, 3) })
      if (!signal.aborted) await once(signal, 'abort')
      watch?.({ ids })
      stop()
      return tokenSample(ids, { prompt: prompt.ids.length, finish: 'abort' })
    },
  }
  return { policy, stopped }
}
