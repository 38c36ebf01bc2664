import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import Anthropic from '@anthropic-ai/sdk'
import type { ImagePart, Message } from '@espalier/text'
import { GoogleGenAI, type Part } from '@google/genai'
import OpenAI from 'openai'
import { describe, expect, it } from 'vitest'
import { z } from 'zod'
import { expectCaptured, withOwnRecord } from '../../../test/captured.ts'
import {
  attemptAt,
  call,
  contextOf,
  openByteRenderer,
  openSeeingRenderer,
  script,
} from '../../../test/rolling.ts'
import { imagesTo } from '../../base/core/image.ts'
import { Canvas } from '../../worlds/pictures/canvas.ts'
import type { ImageSettings } from '../rollout/images/keep.ts'
import { makeMemoryStore } from '../rollout/images/memory-store.ts'
import type { AgentCall } from './agent.ts'
import { type AgentFunction, agent } from './agent.ts'
import { rollAgent } from './roll-agent.ts'

const renderer = await openSeeingRenderer()
const look = call('look', { at: 'door' })

/** A picture of one colour, as base64; all have the same size, and so the same tokens. */
const picture = (shade: number): string =>
  new Canvas(56, 28, [shade, shade, shade]).toPng().toString('base64')
const [door, room] = [picture(1), picture(2)]
const png = (data: string): string => `data:image/png;base64,${data}`

async function asked(
  run: AgentFunction<object>,
  answers: readonly string[],
  more: Partial<ImageSettings> & Partial<Parameters<typeof contextOf>[0]> = {},
) {
  const kept = new Map<string, number>()
  const memory = makeMemoryStore()
  const store: ImageSettings['store'] = {
    ...memory,
    keep(image, bytes) {
      kept.set(image.digest, bytes.length)
      return memory.keep(image, bytes)
    },
  }
  const { max = 8, from = [], ...parts } = more
  const images = { store, max, pixels: 1e6, from }
  const environment = agent({ name: 'asked', task: z.object({}), run, reward: { any: () => 1 } })
  const policy = script(
    renderer,
    answers.map(text => (text.endsWith('>') ? text : `${text}<|im_end|>`)),
  )
  const recorded = withOwnRecord(policy)
  const context = contextOf({ environment, renderer, policy: recorded, images, ...parts })
  const [tree] = await rollAgent(context, attemptAt(environment, {}))
  expectCaptured(tree, recorded.record)
  const [trajectory] = tree.trajectories
  const places = imagesTo(tree, trajectory!.end)
  return { tree, trajectory: trajectory!, places, kept, requests: policy.requests }
}

/** An agent of each client: it shows a door, is asked to look, shows the room, and shows the door again. */
const clients: Readonly<Record<string, AgentFunction<object>>> = {
  async 'OpenAI chat'({ fetch }) {
    const client = new OpenAI({ apiKey: 'none', fetch, maxRetries: 0 })
    const image = (data: string) =>
      ({ type: 'image_url', image_url: { url: png(data), detail: 'high' } }) as const
    const words = { type: 'text', text: 'Open?' } as const
    const messages: OpenAI.ChatCompletionMessageParam[] = [
      { role: 'user', content: [words, image(door)] },
    ]
    const ask = async () => {
      const { choices } = await client.chat.completions.create({ model: 'any', messages, tools })
      messages.push(choices[0]!.message)
      return choices[0]!.message.tool_calls?.[0]?.id
    }
    const tools = [{ type: 'function' as const, function: { name: 'look', parameters: {} } }]
    const id = await ask()
    // The client's types allow texts alone; servers of models that see take images.
    messages.push({ role: 'tool', tool_call_id: id!, content: [image(room)] as never })
    await ask()
    messages.push({ role: 'user', content: [image(door)] })
    await ask()
  },
  async 'OpenAI Responses'({ fetch }) {
    const client = new OpenAI({ apiKey: 'none', fetch, maxRetries: 0 })
    const image = (data: string) =>
      ({ type: 'input_image', image_url: png(data), detail: 'auto' }) as const
    const tools = [{ type: 'function' as const, name: 'look', parameters: {}, strict: false }]
    const ask = (input: OpenAI.Responses.ResponseInput, previous?: string) =>
      client.responses.create({
        ...{ model: 'any', input, tools },
        ...(previous !== undefined && { previous_response_id: previous }),
      })
    const words = { type: 'input_text', text: 'Open?' } as const
    const first = await ask([{ role: 'user', content: [words, image(door)] }])
    const { call_id } = first.output.find(item => item.type === 'function_call')!
    const output = [image(room)]
    const second = await ask([{ type: 'function_call_output', call_id, output }], first.id)
    await ask([{ role: 'user', content: [image(door)] }], second.id)
  },
  async Anthropic({ fetch }) {
    const client = new Anthropic({ apiKey: 'none', fetch, maxRetries: 0 })
    const image = (data: string) =>
      ({ type: 'image', source: { type: 'base64', media_type: 'image/png', data } }) as const
    const tools = [{ name: 'look', input_schema: { type: 'object' as const } }]
    const words = { type: 'text', text: 'Open?' } as const
    const messages: Anthropic.MessageParam[] = [{ role: 'user', content: [words, image(door)] }]
    const ask = async () => {
      const { input_tokens } = await client.messages.countTokens({ model: 'any', messages, tools })
      const said = await client.messages.create({ model: 'any', max_tokens: 99, messages, tools })
      expect(input_tokens).toBe(said.usage.input_tokens)
      messages.push({ role: 'assistant', content: said.content })
      return said.content.find(block => block.type === 'tool_use')?.id
    }
    const content = [image(room)]
    const id = await ask()
    messages.push({ role: 'user', content: [{ type: 'tool_result', tool_use_id: id!, content }] })
    await ask()
    messages.push({ role: 'user', content: [image(door)] })
    await ask()
  },
  async Google({ fetch }) {
    const client = new GoogleGenAI({ apiKey: 'none', httpOptions: { fetch } })
    const functionDeclarations = [{ name: 'look' }]
    const config = { tools: [{ functionDeclarations }] }
    const image = (data: string): Part => ({ inlineData: { mimeType: 'image/png', data } })
    const chat = client.chats.create({ model: 'any', config })
    const first = await chat.sendMessage({ message: [{ text: 'Open?' }, image(door)] })
    const { id, name } = first.functionCalls![0]!
    const parts = [{ inlineData: { mimeType: 'image/png', data: room } }]
    const functionResponse = { id: id!, name: name!, response: { output: 'See.' }, parts }
    await chat.sendMessage({ message: [{ functionResponse }] })
    await chat.sendMessage({ message: [image(door)] })
  },
}

describe('an agent that sees', () => {
  it.each(Object.entries(clients))(
    '[T1] is captured to the token over %s, with every byte once',
    async (_, run) => {
      const { trajectory, places, kept, requests } = await asked(run, [look, 'Yes.', 'Still.'])
      expect(trajectory.outcome).toEqual({ kind: 'completed' })
      expect(trajectory.fidelity).toEqual({ kind: 'exact', forks: [] })
      const digests = places.map(({ digest }) => digest)
      expect(digests).toEqual([digests[0], digests[1], digests[0]])
      expect([...kept.keys()]).toEqual(digests.slice(0, 2))
      for (const { prompt } of requests) {
        expect([...prompt.ids]).toEqual([...renderer.render(prompt.messages, prompt.tools)])
        expect(prompt.images?.places).toEqual(places.slice(0, prompt.images?.places.length))
      }
      expect(JSON.stringify(trajectory)).not.toContain('base64')
    },
  )

  it('[T1] shares no tokens between images that only look alike', async () => {
    const { tree, trajectory, kept } = await asked(
      async ({ speaker, signal }) => {
        for (const data of [door, room]) {
          const content: readonly ImagePart[] = [
            { type: 'image_url', image_url: { url: png(data) } },
          ]
          await speaker.say([{ role: 'user', content }], { signal })
        }
      },
      ['One.', 'Two.'],
    )
    expect(kept.size).toBe(2)
    expect(trajectory.fidelity.kind).toBe('forked')
    const shown = tree.nodes.flatMap(({ segment }) => segment.images ?? [])
    expect(new Set(shown.map(({ digest }) => digest)).size).toBe(2)
  })

  it('is shown the newest images, at most as many as a run allows, and the attempt says so', async () => {
    const { places, trajectory } = await asked(
      async ({ speaker, signal }) => {
        const content = [door, room, door].map(
          data => ({ type: 'image_url', image_url: { url: png(data) } }) as const,
        )
        await speaker.say([{ role: 'user', content }], { signal })
      },
      ['One.'],
      { max: 2 },
    )
    expect(places).toHaveLength(2)
    expect(trajectory.messages[0]!.content).toContainEqual({
      type: 'text',
      text: '[image left out]',
    })
    expect(trajectory.events).toContainEqual(
      expect.objectContaining({ kind: 'images', detail: '1 left out: at most 2 are shown' }),
    )
  })

  it('is refused what cannot be shown, with the reason, and may go on', async () => {
    let fetches = 0
    const server = createServer((_, response) => {
      fetches++
      response.end(Buffer.from(door, 'base64'))
    }).listen(0, '127.0.0.1')
    await once(server, 'listening')
    const host = `127.0.0.1:${(server.address() as AddressInfo).port}`
    const svg = Buffer.from('<svg xmlns="http://www.w3.org/2000/svg"/>').toString('base64')
    const urls = [
      'file:///etc/passwd',
      `image:${'0'.repeat(64)}.png?width=56&height=28&bytes=75`,
      'http://169.254.169.254/latest/meta-data',
      `data:image/svg+xml;base64,${svg}`,
      'data:image/png;base64,AAAA',
      png(new Canvas(2000, 501, [1, 2, 3]).toPng().toString('base64')),
      `http://${host}/door.png`,
      `http://${host}/door.png`,
    ]
    const reasons: string[] = []
    const { places, kept } = await asked(
      async ({ speaker, signal }) => {
        for (const url of urls) {
          const content: Message['content'] = [{ type: 'image_url', image_url: { url } }]
          await speaker
            .say([{ role: 'user', content }], { signal })
            .catch((error: Error) => reasons.push(error.message))
        }
      },
      ['One.', 'Two.'],
      { from: [host] },
    )
    server.close()
    expect(reasons).toEqual([
      expect.stringContaining('messages[0] has an image: file:///etc/passwd'),
      expect.stringContaining('images are sent as data URLs'),
      expect.stringContaining('is not fetched'),
      expect.stringMatching(/SVG/i),
      expect.stringContaining('messages[0] has an image'),
      expect.stringContaining('at most 1000000 in all'),
    ])
    expect([places.length, kept.size, fetches]).toEqual([1, 1, 1])
  })

  it('is told so where the policy only reads', async () => {
    const reading = await openByteRenderer()
    const say = async ({ speaker, signal }: AgentCall<object>): Promise<string> => {
      const content: Message['content'] = [{ type: 'image_url', image_url: { url: png(door) } }]
      await speaker.say([{ role: 'user', content: 'Hello.' }], { signal })
      return await speaker.say([{ role: 'user', content }], { signal }).then(
        () => 'answered',
        (error: Error) => error.message,
      )
    }
    const { trajectory } = await asked(say, ['One.'], { renderer: reading })
    expect(trajectory.report).toMatch(/^messages\[0\] has an image: .*reads text only/)
  })
})
