import { describe, expect, it } from 'vitest'
import { readRecorded, serveRecorded } from '../../../test/servers/recorded.ts'
import { openVllmServer } from '../../../test/servers/vllm.ts'
import {
  type Policy,
  plainCapabilities,
  plainSampling,
  type SampleRequest,
} from '../../base/core/policy.ts'
import { sampled } from '../../base/core/segment.ts'
import { random, seedOf } from '../../base/math/random.ts'
import { openPolicy } from './open-policy.ts'
import { readAddress } from './policy-uri.ts'
import { findLogprobs, tryPolicy } from './trial.ts'
import { type Contradiction, withBasisWatch } from './with-basis-watch.ts'

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
    const trial = await tryPolicy(policy, [prompt], call())
    expect(trial.ids).toEqual([5, 6, 5, 6])
    expect(trial).toMatchObject({ repeatsSeeds: true, warmDifference: 0 })
    expect(trial.meanDifference).toBeGreaterThan(0)
    expect(trial.difference).toBeGreaterThanOrEqual(trial.meanDifference!)
  })
})

/** A model of eight tokens behind a policy whose numbers are raw or processed, and noisy. */
function toyPolicy(
  kind: 'raw' | 'processed',
  { noise = 0, spread = 3, lists = true } = {},
): Policy {
  const draw = random(seedOf('toy'))
  const logits = (at: number): number[] =>
    Array.from({ length: 8 }, (_, token) => spread * Math.sin(1.7 * token + 2.3 * at))
  const numbersAt = (at: number, temperature: number): number[] => {
    const scaled = logits(at).map(each => each / temperature)
    const sum = Math.log(scaled.reduce((all, each) => all + Math.exp(each), 0))
    return scaled.map(each => each - sum)
  }
  const shake = (value: number): number => value + noise * (2 * draw() - 1)
  const version = { from: 0, to: 0 }
  return {
    name: 'toy',
    capabilities: { ...plainCapabilities, score: true, topLogprobs: lists ? 5 : 0 },
    takeLogprobs() {},
    async sample({ prompt: { ids: given }, maxTokens, sampling, topLogprobs = 0 }) {
      const ids = Int32Array.from({ length: maxTokens }, () => Math.floor(8 * draw()))
      const told = [...ids].map((_, at) =>
        numbersAt(given.length + at, kind === 'raw' ? 1 : sampling.temperature).map(shake),
      )
      const best = told.map(each =>
        each.map((logprob, id) => ({ id, logprob })).sort((a, b) => b.logprob - a.logprob),
      )
      const flat = best.flatMap(each => each.slice(0, topLogprobs))
      const top = {
        width: topLogprobs,
        ids: Int32Array.from(flat, ({ id }) => id),
        logprobs: Float32Array.from(flat, ({ logprob }) => logprob),
      }
      const logprobs = Float32Array.from(ids, (id, at) => told[at]![id]!)
      const segment = sampled({ ids, logprobs, version, ...(topLogprobs > 0 && { top }) })
      const usage = { prompt: given.length, sampled: maxTokens, seconds: 0 }
      return { kind: 'tokens', segment, finish: { kind: 'length' }, usage }
    },
    async score(ids, from) {
      const logprobs = Float32Array.from(ids.slice(from), (id, at) =>
        shake(numbersAt(from + at, 1)[id]!),
      )
      return { logprobs, basis: 'tempered', version }
    },
    async [Symbol.asyncDispose]() {},
  }
}

describe('findLogprobs', () => {
  const find = (policy: Policy) => findLogprobs(policy, [prompt, Int32Array.of(4)], call())

  it.each(['raw', 'processed'] as const)(
    'recognises %s numbers of a server whose numbers are as far apart as those of bfloat16',
    async kind => {
      for (const noise of [0, 0.16]) {
        expect(await find(toyPolicy(kind, { noise }))).toMatchObject({ verdict: kind })
        expect(await find(toyPolicy(kind, { noise, lists: false }))).toMatchObject({
          verdict: kind,
        })
      }
    },
  )

  it('does not guess if noise hides the difference', async () => {
    const flat = { noise: 0.4, spread: 0.2 }
    for (const kind of ['raw', 'processed'] as const) {
      expect((await find(toyPolicy(kind, flat)))?.verdict).toBe('undecided')
    }
  })

  it('recognises the raw numbers of a real vLLM in bfloat16, far from what processed ones would be', async () => {
    const recorded = readRecorded('vllm-bfloat16')
    await using server = await serveRecorded(recorded)
    await using policy = await openPolicy(`vllm:${server.url}`, {
      thread: false,
      servedModel: 'smol-bf16',
    })
    const sent = recorded.flatMap(({ path, request }) =>
      path.endsWith('/generate') ? [JSON.stringify(request.token_ids)] : [],
    )
    const prompts = [...new Set(sent)].map(each => Int32Array.from(JSON.parse(each)))
    const evidence = await findLogprobs(policy, prompts, call())
    expect(evidence).toMatchObject({ verdict: 'raw', tokens: 128 })
    expect(evidence!.raw).toBeLessThan(0.2)
    expect(evidence!.processed).toBeGreaterThan(1)
  })

  it('cannot tell without scores', async () => {
    const { score: _, ...without } = toyPolicy('raw')
    expect(await find(without)).toBeUndefined()
  })
})

describe('withBasisWatch', () => {
  const request = (temperature: number): SampleRequest => ({
    prompt: { ids: prompt, messages: [], tools: [] },
    maxTokens: 100,
    sampling: { ...plainSampling, temperature },
    stopIds: [],
    stopStrings: [],
    seed: 1,
    key: { task: 't', member: 0, branch: '', turn: 0 },
    session: 's',
  })

  async function watched(policy: Policy, temperature: number) {
    const found: Contradiction[] = []
    let drawn = 0
    const counting: Policy = {
      ...policy,
      sample: async (asked, within) => {
        if (asked.maxTokens < 100) drawn += asked.maxTokens + 1
        return await policy.sample(asked, within)
      },
    }
    const watching = withBasisWatch(counting, contradiction => found.push(contradiction))
    for (let at = 0; at < 60; at++) {
      await watching.sample(request(temperature), call())
      await new Promise(resolve => setImmediate(resolve))
    }
    return { found, share: drawn / 6000 }
  }

  it('finds numbers that are not what rows call them, with one token in a hundred', async () => {
    // The toy's rows say `tempered`, that is, processed.
    const { found, share } = await watched(toyPolicy('raw', { noise: 0.16 }), 0.7)
    expect(found[0]).toMatchObject({ server: 'toy', label: 'processed' })
    expect(share).toBeLessThanOrEqual(0.01)
    expect((await watched(toyPolicy('processed', { noise: 0.16 }), 0.7)).found).toEqual([])
  })

  it('does not look at temperature 1, where all numbers are the same', async () => {
    expect(await watched(toyPolicy('raw'), 1)).toEqual({ found: [], share: 0 })
  })
})
