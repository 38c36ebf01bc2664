import { describe, expect, it } from 'vitest'
import { faults } from '../../../../test/servers/serving.ts'
import {
  openSglangServer,
  openSglangStage,
  type SglangServerOptions,
} from '../../../../test/servers/sglang.ts'
import {
  describePolicy,
  expectTokens,
  type PolicySubject,
  sampleRequest,
} from '../../../base/core/conformance/policy.conformance.ts'
import { Canvas } from '../../../worlds/pictures/canvas.ts'
import { imageFacts } from '../../rollout/images/keep.ts'
import { makeMemoryStore } from '../../rollout/images/memory-store.ts'
import { openServerThread } from '../transport/thread/thread.ts'
import { openSglang, type SglangOptions } from './sglang.ts'

function subject(
  name: string,
  parts: { policy?: SglangOptions; server?: SglangServerOptions } = {},
): PolicySubject {
  return {
    name,
    faults,
    isElsewhere: parts.policy?.thread !== undefined,
    open: scene =>
      openSglangStage(
        scene,
        (url, options) => openSglang(url, { ...options, ...parts.policy }),
        parts.server,
      ),
  }
}

describePolicy(subject('sglang'))
describePolicy(subject('sglang, streaming', { policy: { stream: true } }))
describePolicy(
  subject('sglang, streaming only what is new', {
    policy: { stream: true },
    server: { incremental: true },
  }),
)
describePolicy(subject('sglang in a thread', { policy: { thread: openServerThread() } }))
describePolicy(
  subject('sglang in a thread, streaming', {
    policy: { thread: openServerThread(), stream: true },
  }),
)
describePolicy(subject('sglang without output_ids', { server: { withoutOutputIds: true } }))

describe('sglang', () => {
  const call = () => ({ signal: AbortSignal.timeout(50_000) })

  it('asks for ids of one length, so that no abort hits another sample', async () => {
    await using server = await openSglangServer()
    await using policy = openSglang(server.url)
    await Promise.all(Array.from({ length: 20 }, () => policy.sample(sampleRequest(), call())))
    const rids = server.seen.map(({ body }) => body.rid as string)
    expect(new Set(rids).size).toBe(20)
    expect(new Set(rids.map(rid => rid.length)).size).toBe(1)
  })

  it('is sent one placeholder and the bytes of each image, and must say that it read what was meant', async () => {
    await using server = await openSglangServer()
    await using policy = openSglang(server.url)
    const bytes = new Canvas(56, 28, [1, 2, 3]).toPng()
    const facts = imageFacts(bytes)
    const store = makeMemoryStore()
    await store.keep(facts, bytes)
    const places = [{ ...facts, start: 1, end: 3 }]
    const images = { places, placeholder: Int32Array.of(9), store }
    const prompt = { ids: Int32Array.of(1, 9, 9, 2), messages: [], tools: [], images }
    await expect(policy.sample(sampleRequest({ prompt }), call())).rejects.toThrow(
      /prompt_token_ids/,
    )
    expect(server.seen.at(-1)!.body).toMatchObject({
      input_ids: [1, 9, 2],
      image_data: [`data:image/png;base64,${bytes.toString('base64')}`],
      mm_hashes: [facts.digest],
      return_prompt_token_ids: true,
    })
    const turned = { ...images, places: [{ ...facts, orientation: 6, start: 1, end: 3 }] }
    const sideways = sampleRequest({ prompt: { ...prompt, images: turned } })
    await expect(policy.sample(sideways, call())).rejects.toThrow(/does not turn images/)
  })

  it('numbers versions: integers stand for themselves, other names raise the counter', async () => {
    const names = ['7', '8', 'step-9', 'step-9', 'default', 'step-9']
    let index = 0
    await using server = await openSglangServer({ version: () => names[index++]! })
    await using policy = openSglang(server.url)
    const ranges: (readonly [number, number, string | undefined])[] = []
    for (const _ of names) {
      const { segment, usage } = expectTokens(await policy.sample(sampleRequest(), call()))
      ranges.push([segment.version.from, segment.version.to, usage.weights])
    }
    expect(ranges).toEqual([
      [7, 7, undefined],
      [7, 8, undefined],
      [8, 9, 'step-9'],
      [9, 9, 'step-9'],
      [9, 10, 'default'],
      [9, 9, 'step-9'],
    ])
  })

  it('knows the version that was described', async () => {
    await using server = await openSglangServer({ version: () => '3' })
    await using policy = openSglang(server.url)
    expect(await policy.describe?.(call())).toEqual({ model: 'test/model', context: 4096 })
    const { segment } = expectTokens(await policy.sample(sampleRequest(), call()))
    expect(segment.version).toEqual({ from: 3, to: 3 })
  })

  it('tells the range when the weights change in mid-stream', async () => {
    let count = 0
    await using server = await openSglangServer({ version: () => (count++ < 8 ? '1' : '2') })
    await using policy = openSglang(server.url, { stream: true })
    const { segment } = expectTokens(await policy.sample(sampleRequest(), call()))
    expect(segment.version).toEqual({ from: 1, to: 2 })
  })

  it('goes on where an aborted sample stopped, under newer weights', async () => {
    let version = '1'
    const controller = new AbortController()
    const turn = Array.from({ length: 100 }, (_, index) => index + 100)
    await using server = await openSglangServer({
      hold: at => (at === 0 ? { after: 25, onReached: () => controller.abort() } : undefined),
      version: () => version,
      answer: ({ prompt }) => {
        const ids = turn.slice(prompt.length - 4)
        return { ids, logprobs: ids.map(() => -1), finish: 'stop' }
      },
    })
    await using policy = openSglang(server.url)
    const request = sampleRequest({ maxTokens: 1000 })
    const first = expectTokens(await policy.sample(request, { signal: controller.signal }))
    expect([first.finish, first.segment.ids.length]).toEqual([{ kind: 'abort' }, 25])
    version = '2'
    const ids = Int32Array.of(...request.prompt.ids, ...first.segment.ids)
    const prompt = { ...request.prompt, ids }
    const second = expectTokens(await policy.sample({ ...request, prompt }, call()))
    expect([...first.segment.ids, ...second.segment.ids]).toEqual(turn)
    expect(first.segment.version).toEqual({ from: 1, to: 1 })
    expect(second.segment.version).toEqual({ from: 1, to: 2 })
  })

  it('scores a prompt from the place that was asked for', async () => {
    await using server = await openSglangServer()
    await using policy = openSglang(server.url)
    const ids = Int32Array.of(512, 256, 128, 1024)
    const scores = await policy.score?.(ids, 2, { temperature: 1 }, call())
    expect(scores?.logprobs).toEqual(Float32Array.of(-128 / 1024, -1))
    expect(server.seen[0]!.body.logprob_start_len).toBe(1)
  })

  it('keeps requests of a session together and shows its key to the server only', async () => {
    await using server = await openSglangServer({ fault: () => 'unavailable' })
    await using policy = openSglang(server.url, { key: 'very-secret' })
    const failure = await policy.sample(sampleRequest(), call()).catch(String)
    expect(failure).not.toContain('very-secret')
    const { headers } = server.seen[0]!
    expect(headers.authorization).toBe('Bearer very-secret')
    expect(headers['x-smg-routing-key']).toBe('pears%2F0')
  })

  it('reads a long stream that repeats itself without reading all of it again', async () => {
    const ids = Array.from({ length: 2000 }, (_, index) => index)
    await using server = await openSglangServer({
      answer: () => ({ ids, logprobs: ids.map(() => -0.5), finish: 'stop' }),
    })
    await using policy = openSglang(server.url)
    let looks = 0
    const watch = (): undefined => void looks++
    const sample = await policy.sample(sampleRequest({ maxTokens: 5000, watch }), call())
    expect([...expectTokens(sample).segment.ids]).toEqual(ids)
    expect(looks).toBeLessThan(200)
  })
})
