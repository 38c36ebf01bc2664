import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { describe, expect, it } from 'vitest'
import { faults } from '../../../../test/servers/serving.ts'
import { openStage, statedSampling } from '../../../../test/servers/staged.ts'
import { openVllmServer, type VllmServerOptions } from '../../../../test/servers/vllm.ts'
import {
  describePolicy,
  expectTokens,
  type PolicySubject,
  sampleRequest,
} from '../../../base/core/conformance/policy.conformance.ts'
import { plainSampling } from '../../../base/core/policy.ts'
import { openVllm, type VllmOptions } from './vllm.ts'

function subject(
  name: string,
  parts: { policy?: VllmOptions; server?: VllmServerOptions } = {},
): PolicySubject {
  return {
    name,
    faults,
    open: scene =>
      openStage(scene, {
        serve: options => openVllmServer({ ...options, ...parts.server }),
        connect: (url, options) => openVllm(url, { ...options, ...parts.policy }),
        stated: body => {
          const parameters = body.sampling_params ?? body
          return {
            prompt: body.token_ids ?? body.prompt,
            maxTokens: parameters.max_tokens,
            seed: parameters.seed,
            sampling: statedSampling(parameters),
          }
        },
      }),
  }
}

describePolicy(subject('vllm'))
describePolicy(subject('vllm, streaming', { policy: { stream: true } }))
describePolicy(subject('vllm by completions', { policy: { endpoint: 'completions' } }))
describePolicy(
  subject('vllm by completions, streaming', { policy: { endpoint: 'completions', stream: true } }),
)

describe('vllm', () => {
  const call = () => ({ signal: AbortSignal.timeout(50_000) })

  it('falls back to completions where the server does not know generate', async () => {
    await using server = await openVllmServer({ withoutGenerate: true })
    await using policy = openVllm(`${server.url}/v1`)
    await policy.sample(sampleRequest(), call())
    await policy.sample(sampleRequest({ watch: () => undefined }), call())
    expect(server.seen.map(({ path }) => path)).toEqual([
      '/inference/v1/generate',
      '/v1/completions',
      '/v1/completions',
    ])
  })

  it('counts what its cache found and how full it is, in the metrics of a real server, and gives nothing without them', async () => {
    const text = readFileSync('test/fixtures/servers/vllm-metrics.txt', 'utf8')
    const metrics = createServer((_, response) => void response.end(text)).listen(0, '127.0.0.1')
    await once(metrics, 'listening')
    await using policy = openVllm(`http://127.0.0.1:${(metrics.address() as AddressInfo).port}`)
    const cache = await policy.prefixCache?.(call())
    const pressure = await policy.pressure?.(call())
    metrics.close()
    await using silent = await openVllmServer()
    await using other = openVllm(silent.url)
    expect([cache, pressure]).toEqual([{ asked: 5924, found: 1920 }, 0])
    expect(await other.pressure?.(call())).toBeUndefined()
    expect(await other.prefixCache?.(call())).toBeUndefined()
  })

  it('marks the basis of its log-probabilities', async () => {
    await using server = await openVllmServer()
    await using raw = openVllm(server.url)
    await using processed = openVllm(server.url, { logprobs: 'processed' })
    const basis = async (policy: typeof raw, sampling = plainSampling) =>
      expectTokens(await policy.sample(sampleRequest({ sampling }), call())).segment.basis
    expect(await basis(raw)).toBe('tempered')
    expect(await basis(raw, { ...plainSampling, temperature: 0.7 })).toBe('raw')
    raw.takeLogprobs?.('processed')
    expect(await basis(raw, { ...plainSampling, temperature: 0.7 })).toBe('tempered')
    expect(await basis(processed)).toBe('tempered')
    expect(await basis(processed, { ...plainSampling, topP: 0.9 })).toBe('renormalised')
  })

  it('draws samples whose seeds follow each other in one request, others in several', async () => {
    await using server = await openVllmServer()
    await using policy = openVllm(server.url)
    await policy.sampleSeveral?.(sampleRequest(), [5, 6, 7], call())
    expect(server.seen.map(({ body }) => body.sampling_params)).toMatchObject([{ n: 3, seed: 5 }])
    await policy.sampleSeveral?.(sampleRequest(), [5, 9], call())
    expect(server.seen.slice(1).map(({ body }) => body.sampling_params.seed)).toEqual([5, 9])
  })

  it.each(['generate', 'completions'] as const)('lists the best candidates: %s', async endpoint => {
    const answer = () => ({ ids: [40], logprobs: [-9], finish: 'stop' as const })
    await using server = await openVllmServer({ answer })
    await using policy = openVllm(server.url, { endpoint })
    const sample = await policy.sample(sampleRequest({ topLogprobs: 2 }), call())
    const { top } = expectTokens(sample).segment
    expect(top && [...top.ids]).toEqual([41, 42])
  })

  it('refuses a prompt that the server changed', async () => {
    const said = async (reads: NonNullable<VllmServerOptions['reads']>) => {
      await using server = await openVllmServer({ reads })
      await using policy = openVllm(server.url, { endpoint: 'completions' })
      const prompt = { ids: Int32Array.of(1, 9, 3), messages: [], tools: [] }
      return await policy.sample(sampleRequest({ prompt }), call())
    }
    await expect(said(([first, , last]) => [first!, 2, last!])).rejects.toThrow(
      'read token 2 at place 1 where 9 was sent',
    )
    await expect(said(ids => [...ids, 4])).rejects.toThrow('4 prompt tokens where 3 were sent')
    await expect(said(ids => ids.slice(1))).rejects.toThrow('read token 9 at place 0')
    await expect(said(ids => ids)).resolves.toBeDefined()
  })

  it('refuses the number that stands for a missing log-probability', async () => {
    const answer = () => ({ ids: [40], logprobs: [-9999], finish: 'stop' as const })
    await using server = await openVllmServer({ answer })
    await using policy = openVllm(server.url)
    await expect(policy.sample(sampleRequest(), call())).rejects.toThrow('got -9999')
  })

  it('takes versions from whoever knows them', async () => {
    let version = 4
    await using server = await openVllmServer({ latency: 20 })
    await using policy = openVllm(server.url, { version: () => version })
    const work = policy.sample(sampleRequest(), call())
    version = 5
    expect(expectTokens(await work).segment.version).toEqual({ from: 4, to: 5 })
  })

  it('describes what is served', async () => {
    await using server = await openVllmServer()
    await using policy = openVllm(server.url)
    expect(await policy.describe?.(call())).toEqual({ model: 'test/model', context: 4096 })
    await using other = openVllm(server.url, { servedModel: 'other' })
    await expect(other.describe?.(call())).rejects.toThrow('It serves: served')
  })
})
