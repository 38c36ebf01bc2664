import { describe, expect, it } from 'vitest'
import { openVllmServer } from '../../../test/servers/vllm.ts'
import { openPolicy } from './open-policy.ts'
import { readAddress } from './policy-uri.ts'
import { findLogprobs, tryPolicy } from './trial.ts'

const call = () => ({ signal: AbortSignal.timeout(50_000) })
const prompt = Int32Array.of(1, 2, 3)

describe('readAddress', () => {
  it('takes parameters and the model off an address', () => {
    expect(readAddress('vllm:http://x:1/v1?logprobs=processed&endpoint=generate#a/b')).toEqual({
      address: 'http://x:1/v1',
      parameters: { logprobs: 'processed', endpoint: 'generate', servedModel: 'a/b' },
    })
  })

  it('leaves files alone', () => {
    expect(readAddress('scripted:what?#1.jsonl').address).toBe('what?#1.jsonl')
  })

  it('refuses a model that is named twice', async () => {
    await expect(openPolicy('openai:http://x#a', { servedModel: 'b' })).rejects.toThrow('give one')
  })
})

describe('tryPolicy', () => {
  const answer = () => ({
    ids: [5, 6],
    logprobs: [-1, -2],
    finish: 'stop' as const,
  })

  it('says how far drawn and scored numbers lie apart, and whether seeds repeat', async () => {
    await using server = await openVllmServer({ answer })
    await using policy = await openPolicy(`vllm:${server.url}`)
    const trial = await tryPolicy(policy, prompt, call())
    expect(trial.ids).toEqual([5, 6])
    expect(trial.repeatsSeeds).toBe(true)
    expect(trial.difference).toBeGreaterThanOrEqual(0)
  })

  it('tells raw numbers from processed ones', async () => {
    await using server = await openVllmServer({ answer })
    await using policy = await openPolicy(`vllm:${server.url}`)
    const same = { ...policy, score: async () => scores([-1, -2]) }
    const other = { ...policy, score: async () => scores([-1.5, -3]) }
    expect(await findLogprobs(same, prompt, call())).toBe('raw')
    expect(await findLogprobs(other, prompt, call())).toBe('processed')
    const { score: _, ...without } = policy
    expect(await findLogprobs(without, prompt, call())).toBeUndefined()
  })
})

function scores(values: readonly number[]) {
  const version = { from: 0, to: 0 }
  return { logprobs: Float32Array.from(values), basis: 'tempered' as const, version }
}
