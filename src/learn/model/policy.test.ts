import { setImmediate as nextTurn } from 'node:timers/promises'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import {
  describePolicy,
  expectTokens,
  sampleRequest,
} from '../../base/core/conformance/policy.conformance.ts'
import { plainSampling, type SampleRequest } from '../../base/core/policy.ts'
import { tokenizerOf } from './draw.ts'
import { type EmbeddedModel, type EmbeddedSampleRequest, openModel } from './model.ts'
import { embeddedPolicy, isEmbedded } from './policy.ts'
import { buildVocabulary, tokenizerFiles } from './vocabulary.ts'

const call = { signal: new AbortController().signal }
const files = tokenizerFiles(buildVocabulary(['one two three four five six seven eight nine ten']))
const shape = { vocabulary: 300, width: 32, layers: 2, heads: 2, hidden: 48, context: 160 }

/** What the suite asks for, said by something in the shape of a model. */
function scriptedModel(ids: readonly number[], logprobs: readonly number[], pace: number) {
  const sample = async (request: EmbeddedSampleRequest, { signal }: { signal: AbortSignal }) => {
    const length = Math.min(ids.length, request.maxTokens)
    let count = 0
    for (; count < length && !signal.aborted; count++) {
      if (pace > 0) await nextTurn()
      request.onToken?.({ id: ids[count]!, logprob: logprobs[count]!, entropy: 0 })
    }
    const width = request.topLogprobs ?? 0
    const finish = count < length ? 'abort' : length < ids.length ? 'length' : 'stop'
    return {
      ids: Int32Array.from(ids.slice(0, count)),
      logprobs: Float32Array.from(logprobs.slice(0, count)),
      entropies: new Float32Array(count),
      ...(width > 0 && {
        topLogprobs: ids
          .slice(0, count)
          .map(id =>
            Array.from({ length: width }, (_, rank) => ({ id: id + rank, logprob: -rank })),
          ),
      }),
      finish,
      version: 0,
      cachedTokens: 0,
    }
  }
  const score = async (given: Int32Array, from: number) => ({
    logprobs: new Float32Array(given.length - from).fill(-1),
    entropies: new Float32Array(given.length - from),
  })
  return { sample, score, shape: { ...shape, context: 4096 }, files, version: () => 0 }
}

describePolicy({
  name: 'embedded',
  faults: [],
  async open({ ids, logprobs, pace = 0 }) {
    const model = scriptedModel(ids, logprobs, pace) as unknown as EmbeddedModel
    return {
      policy: embeddedPolicy(model, { ownsModel: false }),
      [Symbol.asyncDispose]: async () => {},
    }
  },
})

describe('the embedded policy', () => {
  let model: EmbeddedModel
  beforeAll(async () => {
    model = await openModel({ shape, seed: 4, files }, { threads: 1 })
  })
  afterAll(() => model[Symbol.asyncDispose]())

  const request = (parts: Partial<SampleRequest> = {}): SampleRequest =>
    sampleRequest({
      prompt: { ids: Int32Array.of(2, 270, 271, 0, 3), messages: [], tools: [] },
      maxTokens: 40,
      stopIds: [],
      ...parts,
    })

  it('[T1] gives log-probabilities that scoring confirms, at the temperature of the sample', async () => {
    const policy = embeddedPolicy(model, { ownsModel: false })
    for (const temperature of [0.5, 1, 2]) {
      const { prompt } = request()
      const sampling = { ...plainSampling, temperature, topK: 20, topP: 0.9 }
      const sample = expectTokens(await policy.sample(request({ sampling }), call))
      const { ids, logprobs, entropies, basis } = sample.segment
      const path = Int32Array.of(...prompt.ids, ...ids)
      const scores = await policy.score!(path, prompt.ids.length, { temperature }, call)
      expect(basis).toBe('tempered')
      expect(entropies?.length).toBe(ids.length)
      const gaps = logprobs!.map((value, at) => Math.abs(value - scores.logprobs[at]!))
      expect(Math.max(...gaps)).toBeLessThan(1e-4)
    }
  })

  it('[S1] is a function of the seed, whoever samples beside it', async () => {
    const policy = embeddedPolicy(model, { ownsModel: false })
    const alone = expectTokens(await policy.sample(request({ seed: 7 }), call))
    const samples = await Promise.all(
      [5, 6, 7, 8].map(seed => policy.sample(request({ seed, session: `${seed}` }), call)),
    )
    expect(expectTokens(samples[2]!).segment).toEqual(alone.segment)
    expect(expectTokens(samples[1]!).segment.ids).not.toEqual(alone.segment.ids)
  })

  it('ends at a stop string, at the token that completes it', async () => {
    const policy = embeddedPolicy(model, { ownsModel: false })
    const whole = expectTokens(await policy.sample(request({ seed: 3 }), call)).segment.ids
    const tokenizer = tokenizerOf(model)
    const stop = tokenizer.decode(whole.subarray(9, 11))
    const sample = expectTokens(
      await policy.sample(request({ seed: 3, stopStrings: [stop] }), call),
    )
    const text = tokenizer.decode(sample.segment.ids)
    expect(sample.finish).toEqual({ kind: 'stop' })
    expect(text.endsWith(stop) || text.includes(stop)).toBe(true)
    expect(tokenizer.decode(sample.segment.ids.subarray(0, -1)).includes(stop)).toBe(false)
    expect([...sample.segment.ids]).toEqual([...whole.subarray(0, sample.segment.ids.length)])
  })

  it('keeps nothing that was drawn after a guard had spoken', async () => {
    const policy = embeddedPolicy(model, { ownsModel: false })
    const watch = ({ ids }: { ids: Int32Array }) => (ids.length === 6 ? 'six' : undefined)
    const samples = await Promise.all(
      Array.from({ length: 3 }, () => policy.sample(request({ seed: 2, watch }), call)),
    )
    for (const sample of samples) {
      expect(expectTokens(sample).segment.ids.length).toBe(6)
      expect(sample.finish).toEqual({ kind: 'guard', guard: 'six' })
    }
  })

  it('counts what its prefix cache had', async () => {
    const policy = embeddedPolicy(model, { ownsModel: false })
    const first = expectTokens(await policy.sample(request({ maxTokens: 30 }), call))
    const ids = Int32Array.of(...request().prompt.ids, ...first.segment.ids, 5, 3)
    const prompt = { ids, messages: [], tools: [] }
    const second = await policy.sample(request({ prompt }), call)
    expect(second.usage.cached).toBeGreaterThan(16)
  })

  it('says once that it does not know the words of an opening', async () => {
    const warnings: string[] = []
    const policy = embeddedPolicy(model, { ownsModel: false, warn: text => warnings.push(text) })
    const known = { ids: tokenizerOf(model).encode(' two three four'), messages: [], tools: [] }
    await policy.sample(request({ prompt: known }), call)
    expect(warnings).toEqual([])
    const strange = embeddedPolicy(model, { ownsModel: false, warn: text => warnings.push(text) })
    const prompt = { ids: tokenizerOf(model).encode(' zwölf Boxkämpfer'), messages: [], tools: [] }
    await strange.sample(request({ prompt }), call)
    await strange.sample(request({ prompt }), call)
    expect(warnings.length).toBe(1)
    expect(warnings[0]).toMatch(/^100 % of the opening .*espalier teach/)
  })

  it('is told by its weights, whatever policies are called', () => {
    const policy = embeddedPolicy(model, { ownsModel: false })
    expect(isEmbedded(policy)).toBe(true)
    const { inside, ...served } = policy
    expect(isEmbedded({ ...served, name: 'embedded-qwen' })).toBe(false)
    expect(isEmbedded({ ...served, inside, name: 'mine' })).toBe(true)
  })
})
