// Against what a real vLLM 0.32.0 answered on a CPU (test/fixtures/servers/vllm-images, vllm-images-chat): a toy of the Qwen2-VL shape.
import { createHash } from 'node:crypto'
import type { ImagePart, Message } from '@espalier/text'
import { readImageHeader } from '@espalier/text/images'
import { describe, expect, it } from 'vitest'
import { type Recorded, readRecorded, serveRecorded } from '../../../../test/servers/recorded.ts'
import { expectTokens, sampleRequest } from '../../../base/core/conformance/policy.conformance.ts'
import { changeImages, type ImagePlace, type PromptImages } from '../../../base/core/image.ts'
import type { Policy } from '../../../base/core/policy.ts'
import { keepImage } from '../../rollout/images/keep.ts'
import { makeMemoryStore } from '../../rollout/images/memory-store.ts'
import { openOpenAiChat } from './openai-chat.ts'
import { openVllm } from './vllm.ts'

const recorded = readRecorded('vllm-images')
const samples = recorded.filter(
  ({ request, status }) => status === 200 && request.sampling_params.prompt_logprobs === undefined,
)
const shown = samples.filter(({ request }) => request.content_parts?.length > 0)
const several = shown.find(({ request }) => request.content_parts.length === 2)!
const miss = recorded.find(({ status }) => status === 400)!
const pad = 262

/** The images that a recorded request showed, if the server laid them out. */
async function imagesOf({ request, body }: Recorded): Promise<PromptImages> {
  const store = makeMemoryStore()
  const { mm_placeholders } = JSON.parse(body!)
  const places: ImagePlace[] = []
  for (const [index, part] of request.content_parts.entries()) {
    const bytes = Buffer.from(part.url.split(',')[1], 'base64')
    const { width, height, kind, orientation } = readImageHeader(bytes)
    const digest = createHash('sha256').update(bytes).digest('hex')
    const { offset, length } = mm_placeholders.image[index]
    const facts = { digest, kind, width, height, orientation, bytes: bytes.length }
    await store.keep(facts, bytes)
    places.push({ ...facts, start: offset, end: offset + length })
  }
  return { places, placeholder: Int32Array.of(pad), store }
}

async function sampleOf(policy: Policy, from: Recorded, images: PromptImages) {
  const ids = Int32Array.from(JSON.parse(from.body!).prompt_token_ids)
  const { seed, max_tokens, stop, stop_token_ids } = from.request.sampling_params
  const request = sampleRequest({
    prompt: { ids, messages: [], tools: [], images },
    maxTokens: max_tokens,
    seed,
    stopStrings: stop,
    stopIds: stop_token_ids,
  })
  return expectTokens(await policy.sample(request, { signal: AbortSignal.timeout(20_000) }))
}

describe('a chat server that is shown images', () => {
  it.each(readRecorded('vllm-images-chat'))(
    'is sent what a real vLLM answered to (line $line), and its tokens count if it read those that were meant',
    async one => {
      await using server = await serveRecorded([one])
      await using policy = openOpenAiChat(server.url, { servedModel: one.request.model })
      const store = makeMemoryStore()
      const keep = (part: ImagePart) =>
        keepImage(part, { store, max: 8, pixels: 1e6, from: [] }, AbortSignal.timeout(20_000))
      const messages = await changeImages(one.request.messages as readonly Message[], keep)
      const said = JSON.parse(one.body!)
      const prompt = {
        ids: Int32Array.from(said.prompt_token_ids),
        messages,
        tools: one.request.tools ?? [],
        images: { places: [], placeholder: Int32Array.of(pad), store },
      }
      const { max_tokens: maxTokens, seed } = one.request
      const request = sampleRequest({ prompt, maxTokens, seed })
      const sample = await policy.sample(request, { signal: AbortSignal.timeout(20_000) })
      expect(server.unknown).toEqual([])
      expect([...expectTokens(sample).segment.ids]).toEqual(said.choices[0].token_ids)
    },
  )
})

describe('vLLM that is shown images', () => {
  it.each(shown)(
    'is sent what a real one answered to (line $line), and read to the token',
    async one => {
      await using server = await serveRecorded([one])
      await using policy = openVllm(server.url)
      const { segment } = await sampleOf(policy, one, await imagesOf(one))
      expect(server.unknown).toEqual([])
      const [choice] = JSON.parse(one.body!).choices
      expect([...segment.ids]).toEqual(choice.token_ids)
      expect(segment.logprobs![0]).toBeCloseTo(choice.logprobs.content[0].logprob, 5)
    },
  )

  it('is sent the bytes of an image once, and again if it forgot them', async () => {
    const byName: Recorded = {
      ...several,
      request: {
        ...several.request,
        content_parts: several.request.content_parts.map(
          ({ type, uuid }: { type: string; uuid: string }) => ({
            type,
            uuid,
          }),
        ),
      },
    }
    const forgotten: Recorded = { ...byName, status: miss.status, body: miss.body! }
    await using server = await serveRecorded([several, byName, forgotten, several])
    await using policy = openVllm(server.url)
    const images = await imagesOf(several)
    for (let turn = 0; turn < 3; turn++) await sampleOf(policy, several, images)
    expect(server.unknown).toEqual([])
  })

  it('that lays an image out otherwise fails the sample, and says where', async () => {
    const other: Recorded = { ...several, request: undefined }
    await using server = await serveRecorded([other])
    await using policy = openVllm(server.url)
    const images = await imagesOf(several)
    const ids = Int32Array.from([...JSON.parse(several.body!).prompt_token_ids, 70])
    const request = sampleRequest({ prompt: { ids, messages: [], tools: [], images } })
    const sampled = policy.sample(request, { signal: AbortSignal.timeout(20_000) })
    await expect(sampled).rejects.toThrow(
      /laid the images out in \d+ prompt tokens where \d+ were meant/,
    )
  })

  it('says how it is started where its door for tokens with images is closed', async () => {
    const closed: Recorded = { ...several, request: undefined, status: 403, body: 'disabled' }
    await using server = await serveRecorded([closed])
    await using policy = openVllm(server.url)
    await expect(sampleOf(policy, several, await imagesOf(several))).rejects.toThrow(
      /start it with --enable-scale-out/,
    )
  })
})
