import { describe, expect, it } from 'vitest'
import {
  type LlamaCppServerOptions,
  openLlamaCppServer,
} from '../../../../test/servers/llama-cpp.ts'
import { faults } from '../../../../test/servers/serving.ts'
import { openStage, statedSampling } from '../../../../test/servers/staged.ts'
import {
  describePolicy,
  expectTokens,
  type PolicySubject,
  sampleRequest,
} from '../../../base/core/conformance/policy.conformance.ts'
import { plainSampling } from '../../../base/core/policy.ts'
import { type LlamaCppOptions, openLlamaCpp } from './llama-cpp.ts'

function subject(name: string, options: LlamaCppOptions = {}): PolicySubject {
  return {
    name,
    faults,
    open: scene =>
      openStage(scene, {
        serve: openLlamaCppServer,
        connect: (url, given) => openLlamaCpp(url, { ...given, ...options }),
        stated: body => ({
          prompt: body.prompt,
          maxTokens: body.n_predict,
          seed: body.seed,
          sampling: statedSampling(body),
        }),
      }),
  }
}

describePolicy(subject('llama-cpp'))
describePolicy(subject('llama-cpp, streaming', { stream: true }))

describe('llama-cpp', () => {
  const call = () => ({ signal: AbortSignal.timeout(50_000) })
  const answer = () => ({
    ids: [10, 20, 30, 40],
    logprobs: [-1, -0.5, -0.25, -2],
    finish: 'stop' as const,
  })
  const open = async (options: LlamaCppServerOptions = {}) =>
    openLlamaCppServer({ answer, ...options })

  it('T1 gives exact ids, and no number for tokens that end inside a character', async () => {
    await using server = await open({ split: [1] })
    await using policy = openLlamaCpp(server.url)
    const { segment } = expectTokens(await policy.sample(sampleRequest(), call()))
    expect([...segment.ids]).toEqual([10, 20, 30, 40])
    expect([...segment.logprobs!]).toEqual([-1, Number.NaN, -0.25, -2])
  })

  it('asks again, whole, where a stream loses tokens', async () => {
    await using server = await open({ split: [1] })
    await using policy = openLlamaCpp(server.url)
    const request = sampleRequest({ stopStrings: ['\n\n'] })
    const { segment } = expectTokens(await policy.sample(request, call()))
    expect([...segment.ids]).toEqual([10, 20, 30, 40])
    expect(server.seen.map(({ body }) => body.stream)).toEqual([true, false])
  })

  it('ends at stop ids that the server does not know', async () => {
    await using server = await open()
    for (const stream of [false, true]) {
      await using policy = openLlamaCpp(server.url, { stream })
      const request = sampleRequest({ stopIds: [20], topLogprobs: 2 })
      const { segment, finish } = expectTokens(await policy.sample(request, call()))
      expect([...segment.ids]).toEqual([10, 20])
      expect(segment.logprobs?.length).toBe(2)
      expect(segment.top?.ids.length).toBe(4)
      expect(finish).toEqual({ kind: 'stop' })
    }
  })

  it('marks the basis of its log-probabilities', async () => {
    await using server = await open()
    await using policy = openLlamaCpp(server.url)
    const basis = async (sampling: Partial<typeof plainSampling>) => {
      const request = sampleRequest({ sampling: { ...plainSampling, ...sampling } })
      return expectTokens(await policy.sample(request, call())).segment.basis
    }
    expect(await basis({ temperature: 0.7 })).toBe('tempered')
    expect(await basis({ topK: 5 })).toBe('renormalised')
    expect(await basis({ temperature: 0 })).toBe('raw')
  })

  it('describes what is served', async () => {
    await using server = await open()
    await using policy = openLlamaCpp(server.url)
    expect(await policy.describe?.(call())).toEqual({ model: 'model.gguf', context: 4096 })
  })
})
