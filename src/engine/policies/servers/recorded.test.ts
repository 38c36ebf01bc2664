// Our policies against what real servers answered: test/fixtures/servers, recorded from vLLM 0.32.0,
// SGLang 0.5.23 (and 0.5.15 on a graphics card) and llama.cpp.
import { describe, expect, it } from 'vitest'
import { type Recorded, readRecorded, serveRecorded } from '../../../../test/servers/recorded.ts'
import { expectTokens, sampleRequest } from '../../../base/core/conformance/policy.conformance.ts'
import type { Policy, SampleRequest } from '../../../base/core/policy.ts'
import { withRetries } from '../with-retries.ts'
import { openLlamaCpp } from './llama-cpp.ts'
import { openOpenAiChat } from './openai-chat.ts'
import { openSglang } from './sglang.ts'
import { openVllm } from './vllm.ts'

const call = () => ({ signal: AbortSignal.timeout(50_000) })

/** The request of ours that a recorded one came from. */
function requestOf({ request }: Recorded): SampleRequest {
  const { prompt, input_ids, token_ids, sampling_params, ...rest } = request
  const said = { ...rest, ...sampling_params }
  return sampleRequest({
    prompt: {
      ids: Int32Array.from(prompt ?? input_ids ?? token_ids),
      messages: [],
      tools: [],
    },
    maxTokens: said.n_predict ?? said.max_new_tokens ?? said.max_tokens,
    seed: said.sampling_seed ?? said.seed,
    stopStrings: said.stop,
    stopIds: said.stop_token_ids ?? [],
    sampling: {
      temperature: said.temperature,
      topP: said.top_p,
      topK: Math.max(0, said.top_k),
      minP: said.min_p,
    },
  })
}

async function sampleOf(policy: Policy, recorded: Recorded) {
  return expectTokens(await policy.sample(requestOf(recorded), call()))
}

/** The exchange as the answer to any request: some were asked with options that we never send. */
const toAny = (recorded: Recorded): Recorded => ({ ...recorded, request: undefined })

describe('vLLM as it answered', () => {
  const recorded = readRecorded('vllm')
  const at = (line: number): Recorded => recorded[line - 1]!

  it('is sampled over /v1/completions where plain `vllm serve` answers 403 to generate', async () => {
    const refused: Recorded = { ...at(1), request: asGenerate(at(12)) }
    await using server = await serveRecorded([refused, at(12), at(13)])
    await using policy = openVllm(server.url)
    const { segment, finish } = await sampleOf(policy, at(12))
    const [choice] = JSON.parse(at(12).body!).choices
    expect([...segment.ids]).toEqual(choice.token_ids)
    expect(segment.logprobs![2]).toBeCloseTo(choice.logprobs.token_logprobs[2], 6)
    expect(finish).toEqual({ kind: 'stop' })
    // Asked once only: the second sample goes the open way at once.
    await sampleOf(policy, at(13))
    expect(server.unknown).toEqual([])
  })

  it('tells inside an answer which weights sampled what, where they changed meanwhile', async () => {
    await using server = await serveRecorded([toAny(at(133))])
    await using policy = openVllm(server.url, { stream: true })
    const { segment } = await sampleOf(policy, at(133))
    // step-1 and step-2 are the first two names that were seen.
    expect(segment.version).toEqual({ from: 0, to: 1 })
  })
})

describe('vLLM held to a schema (npm run servers -- --forms --record)', () => {
  const exchanges = readRecorded('vllm-forms')

  it.each([
    [1, 'renormalised'],
    [0.7, 'raw'],
  ])('at temperature %d says that its log-probabilities are %s', async (temperature, basis) => {
    const found = exchanges.find(({ request }) => request.temperature === temperature)!
    const { json: schema } = found.request.structured_outputs
    await using server = await serveRecorded([found])
    await using policy = openVllm(server.url, { endpoint: 'completions', servedModel: 'toy' })
    const form = { oneOf: [{ before: '', schema, after: '' }] } as const
    const sample = await policy.sample({ ...requestOf(found), form }, call())
    const { segment } = expectTokens(sample)
    expect(segment.basis).toBe(basis)
    // Of 513 tokens, the whole distribution gives the drawn ones 0.6 % on average (-5.1 and -5.6).
    expect(
      segment.logprobs!.reduce((sum, each) => sum + each) / segment.ids.length,
    ).toBeGreaterThan(-0.5)
    expect(server.unknown).toEqual([])
  })
})

/** The body that `generate` is first sent for what was recorded over the other endpoint. */
function asGenerate({ request }: Recorded): unknown {
  const {
    prompt,
    stream,
    return_token_ids: _a,
    return_tokens_as_token_ids: _b,
    ...parameters
  } = request
  return { token_ids: prompt, sampling_params: parameters, stream }
}

describe('vLLM on a CPU as it answered `npm run servers`', () => {
  const recorded = readRecorded('vllm-cpu')
  const samples = recorded.filter(
    ({ path, request }) => path === '/v1/completions' && request.max_tokens > 1,
  )

  it('gives the ids and numbers of every sample, at both temperatures and of an adapter', async () => {
    expect(samples.length).toBe(12)
    for (const each of samples) {
      await using server = await serveRecorded([toAny(recorded[0]!), toAny(each)])
      await using policy = openVllm(server.url)
      const { segment } = await sampleOf(policy, each)
      const [choice] = JSON.parse(each.body!).choices
      expect([...segment.ids]).toEqual(choice.token_ids)
      expect([...segment.logprobs!]).toEqual([
        ...Float32Array.from(choice.logprobs.token_logprobs as number[]),
      ])
    }
  })

  it('scores what it sampled with the very numbers it sampled with', async () => {
    const [refused, drawn, scored] = recorded as [Recorded, Recorded, Recorded]
    await using server = await serveRecorded([toAny(refused), toAny(scored)])
    await using policy = openVllm(server.url)
    const ids = Int32Array.from(scored.request.prompt)
    const from = drawn.request.prompt.length
    const { logprobs } = await policy.score!(ids, from, { temperature: 1 }, call())
    const [choice] = JSON.parse(drawn.body!).choices
    expect(Array.from(logprobs, Math.fround)).toEqual(
      choice.logprobs.token_logprobs.map(Math.fround),
    )
  })
})

describe('llama.cpp as it answered', () => {
  const recorded = readRecorded('llama-cpp')
  const at = (line: number): Recorded => recorded[line - 1]!
  const whole = recorded.filter(
    ({ path, status, request, closed_by_client: closed }) =>
      path === '/completion' &&
      status === 200 &&
      Array.isArray(request?.prompt) &&
      request.n_predict > 0 &&
      !request.stream &&
      request.stop.length === 0 &&
      request.n_probs === 1 &&
      !closed,
  )

  it.each(whole.map(each => [each.line, each.what, each] as const))(
    'line %i, %s: every id is kept, and numbers are missing only inside characters',
    async (_line, _what, each) => {
      await using server = await serveRecorded([each])
      await using policy = openLlamaCpp(server.url)
      const { segment } = await sampleOf(policy, each)
      const answer = JSON.parse(each.body!)
      expect([...segment.ids]).toEqual(answer.tokens)
      const numbers = [...segment.logprobs!].filter(value => !Number.isNaN(value))
      expect(numbers.length).toBeGreaterThanOrEqual(answer.completion_probabilities.length - 2)
      expect(server.unknown).toEqual([])
    },
  )

  it('gives the number of a goat to its last token', async () => {
    await using server = await serveRecorded([at(45)])
    await using policy = openLlamaCpp(server.url)
    const { segment } = await sampleOf(policy, at(45))
    expect([...segment.ids].slice(5, 10)).toEqual([5392, 11162, 238, 238, 624])
    const numbers = [...segment.logprobs!.slice(5, 10)]
    expect(numbers.map(Number.isNaN)).toEqual([false, true, true, false, false])
    expect(numbers[3]).toBeCloseTo(Math.log(0.9994272589683533), 6)
  })

  it('asks again, whole, for what a stream lost', async () => {
    const again: Recorded = { ...at(45), request: { ...at(45).request, n_predict: 45 } }
    await using server = await serveRecorded([at(49), again])
    await using policy = openLlamaCpp(server.url, { stream: true })
    const { segment } = await sampleOf(policy, at(49))
    expect([...segment.ids]).toEqual(JSON.parse(at(45).body!).tokens)
  })

  it('does not repeat what the same seed would sample again', async () => {
    await using server = await serveRecorded([at(11)])
    const retries: unknown[] = []
    await using policy = withRetries(openLlamaCpp(server.url), {
      onRetry: each => retries.push(each),
    })
    await expect(sampleOf(policy, at(11))).rejects.toThrow('does not match the expected')
    expect(retries).toEqual([])
  })
})

describe('SGLang as it answered', () => {
  const recorded = readRecorded('sglang')
  const at = (line: number): Recorded => recorded[line - 1]!

  it.each([10, 16, 20, 24, 95])('line %i is read to the last token', async line => {
    await using server = await serveRecorded([at(line)])
    await using policy = openSglang(server.url, { stream: at(line).request.stream })
    const { segment } = await sampleOf(policy, at(line))
    expect(segment.ids.length).toBeGreaterThan(0)
    expect([...segment.logprobs!].some(Number.isNaN)).toBe(false)
  })

  it.each([
    [125, { from: 2, to: 3 }],
    [121, { from: 1, to: 2 }],
  ])('line %i has the versions of its spans', async (line, version) => {
    await using server = await serveRecorded([toAny(at(line))])
    await using policy = openSglang(server.url, { stream: at(line).request.stream })
    const { segment } = await sampleOf(policy, at(line))
    expect(segment.version).toEqual(version)
  })

  it('says what a stream of too long a prompt says, and does not repeat it', async () => {
    await using server = await serveRecorded([at(53)])
    const retries: unknown[] = []
    const plain = openSglang(server.url, { stream: true })
    await using policy = withRetries(plain, { onRetry: each => retries.push(each) })
    await expect(sampleOf(policy, at(53))).rejects.toThrow(/longer than the model's context length/)
    expect(retries).toEqual([])
  })
})

describe('SGLang 0.5.15 in bfloat16 on a graphics card as it answered `npm run servers`', () => {
  const recorded = readRecorded('sglang-gpu')
  const drawn = recorded.filter(({ request }) => request.sampling_params.max_new_tokens > 1)

  it('gives the ids and numbers of every sample, at both temperatures', async () => {
    expect(drawn).toHaveLength(18)
    for (const each of drawn) {
      await using server = await serveRecorded([toAny(each)])
      await using policy = openSglang(server.url)
      const { segment } = await sampleOf(policy, each)
      const told: [number, number][] = JSON.parse(each.body!).meta_info.output_token_logprobs
      expect([...segment.ids]).toEqual(told.map(([, id]) => id))
      expect([...segment.logprobs!]).toEqual(told.map(([logprob]) => Math.fround(logprob)))
    }
  })

  it('scores a sample with other numbers than it drew it with, by what is normal there', async () => {
    const apart: number[] = []
    for (const [index, each] of drawn.slice(0, 8).entries()) {
      const scored = recorded[2 * index + 1]!
      await using server = await serveRecorded([toAny(scored)])
      await using policy = openSglang(server.url)
      const ids = Int32Array.from(scored.request.input_ids)
      const from = each.request.input_ids.length
      const { logprobs } = await policy.score!(ids, from, { temperature: 1 }, call())
      const told: [number, number][] = JSON.parse(each.body!).meta_info.output_token_logprobs
      apart.push(...told.map(([logprob], at) => Math.abs(logprob - logprobs[at]!)))
    }
    const average = apart.reduce((sum, each) => sum + each, 0) / apart.length
    expect(average).toBeGreaterThan(0.01)
    expect(average).toBeLessThan(0.06)
  })
})

describe('transformers serve as it answered', () => {
  it('is asked plainly once it has refused what it does not know', async () => {
    const [refused, plain, next] = readRecorded('transformers').slice(-3)
    await using server = await serveRecorded([refused!, plain!, next!])
    await using policy = openOpenAiChat(server.url, { servedModel: 'MODEL' })
    const asked = ({ request }: Recorded) =>
      sampleRequest({
        prompt: { ids: Int32Array.of(), messages: request.messages, tools: [] },
        maxTokens: request.max_tokens,
        seed: request.seed,
        stopIds: [],
        stopStrings: [],
      })
    const sample = await policy.sample(asked(plain!), call())
    if (sample.kind !== 'text') throw new Error('it gives no ids')
    expect(sample.message.content).toBe(JSON.parse(plain!.body!).choices[0].message.content)
    await policy.sample(asked(next!), call())
    expect(server.unknown).toEqual([])
  })

  it('fails to list its models, which leads to the flag that names one', async () => {
    const [broken] = readRecorded('transformers').filter(
      ({ path, status }) => path === '/v1/models' && status === 500,
    )
    await using server = await serveRecorded([broken!, broken!])
    await using nameless = openVllm(server.url)
    await expect(nameless.describe!(call())).rejects.toThrow(/--served-model/)
    await using named = openVllm(server.url, { servedModel: 'mine' })
    expect(await named.describe!(call())).toEqual({ model: 'mine' })
  })
})
