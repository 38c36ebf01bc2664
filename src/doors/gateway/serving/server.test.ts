import { tmpdir } from 'node:os'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import type { Foreign } from '../../../../test/foreign.ts'
import { keepSecret } from '../../../base/core/process/secrets.ts'
import { type EmbeddedModel, openModel } from '../../../learn/model/model.ts'
import { buildVocabulary, tokenizerFiles } from '../../../learn/model/vocabulary.ts'
import { type ModelServer, serveModel } from './server.ts'

const words = 'one two three four five six seven eight nine ten count :number [count(number=1)]'
const shape = { vocabulary: 290, width: 32, layers: 2, heads: 2, hidden: 48, context: 96 }
const { signal } = new AbortController()

let model: EmbeddedModel
let server: ModelServer

beforeAll(async () => {
  const files = tokenizerFiles(buildVocabulary([words]))
  const vocabulary = JSON.parse(new TextDecoder().decode(files.get('tokenizer.json'))).model.vocab
  model = await openModel(
    { shape: { ...shape, vocabulary: Object.keys(vocabulary).length }, seed: 2, files },
    { threads: 1 },
  )
  server = await serveModel(model, { folder: 'models/tiny', port: 0, weightFolders: [tmpdir()] })
})

afterAll(async () => {
  await server[Symbol.asyncDispose]()
  await model[Symbol.asyncDispose]()
})

async function post(path: string, body: unknown): Promise<{ status: number; body: Foreign }> {
  const answer = await fetch(`${server.url}${path}`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify(body),
  })
  const text = await answer.text()
  return { status: answer.status, body: text === '' ? undefined : JSON.parse(text) }
}

/** The data of every event of a stream. */
async function stream(path: string, body: unknown): Promise<Foreign[]> {
  const answer = await fetch(`${server.url}${path}`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify(body),
  })
  const events = (await answer.text()).split('\n\n').filter(event => event !== '')
  expect(events.at(-1)).toBe('data: [DONE]')
  return events.slice(0, -1).map(event => JSON.parse(event.slice('data: '.length)))
}

const prompt = [2, 263, 264, 0, 3]
const parameters = { max_new_tokens: 12, temperature: 0.8, sampling_seed: 5, ignore_eos: true }

async function direct(): Promise<{ ids: number[]; logprobs: number[] }> {
  const sample = await model.sample(
    { prompt: Int32Array.from(prompt), maxTokens: 12, temperature: 0.8, stop: [], seed: 5 },
    { signal },
  )
  return { ids: [...sample.ids], logprobs: [...sample.logprobs] }
}

describe('serving SGLang’s protocol', () => {
  it('gives the ids and log-probabilities that the model gives in process, bit for bit', async () => {
    const { body } = await post('/generate', {
      input_ids: prompt,
      sampling_params: parameters,
      return_logprob: true,
      top_logprobs_num: 2,
      return_text_in_logprobs: true,
    })
    const { ids, logprobs } = await direct()
    expect(body.output_ids).toEqual(ids)
    const { meta_info: meta } = body
    expect(meta.output_token_logprobs.map((pair: unknown[]) => pair[0])).toEqual(logprobs)
    expect(meta.output_token_logprobs.map((pair: unknown[]) => pair[1])).toEqual(ids)
    expect(typeof meta.output_token_logprobs[0][2]).toBe('string')
    expect(meta.output_top_logprobs.length).toBe(12)
    expect(meta.output_top_logprobs[0].length).toBe(2)
    expect(meta).toMatchObject({
      finish_reason: { type: 'length', length: 12 },
      prompt_tokens: 5,
      completion_tokens: 12,
      weight_version: '0',
    })
  })

  it('streams cumulatively and ends as the whole answer does', async () => {
    const events = await stream('/generate', {
      rid: 'r1',
      input_ids: prompt,
      sampling_params: parameters,
      return_logprob: true,
      stream: true,
    })
    const { ids } = await direct()
    expect(events.length).toBe(13)
    expect(events[4].output_ids).toEqual(ids.slice(0, 5))
    expect(events[4].meta_info).toMatchObject({ finish_reason: null, completion_tokens: 5 })
    expect(events.at(-1).output_ids).toEqual(ids)
    expect(events.at(-1).meta_info.finish_reason).toEqual({ type: 'length', length: 12 })
  })

  it('answers batches and several copies, each with its own seed', async () => {
    const { body } = await post('/generate', {
      input_ids: [prompt, prompt],
      sampling_params: [parameters, { ...parameters, sampling_seed: 6 }],
      rid: ['a', 'b'],
    })
    expect(body.length).toBe(2)
    expect(body[0].output_ids).toEqual((await direct()).ids)
    expect(body[1].output_ids).not.toEqual(body[0].output_ids)
    expect(body[1].meta_info.id).toBe('b')
    const copies = await post('/generate', {
      input_ids: prompt,
      sampling_params: { ...parameters, n: 2 },
    })
    expect(copies.body.map((one: { output_ids: number[] }) => one.output_ids)).toEqual(
      body.map((one: { output_ids: number[] }) => one.output_ids),
    )
  })

  it('stops at ids and texts, and hides the stop token in the text', async () => {
    const { ids } = await direct()
    const stopped = await post('/generate', {
      input_ids: prompt,
      sampling_params: { ...parameters, stop_token_ids: [ids[4]] },
    })
    const end = ids.indexOf(ids[4]!) + 1
    expect(stopped.body.output_ids).toEqual(ids.slice(0, end))
    expect(stopped.body.meta_info.finish_reason).toEqual({ type: 'stop', matched: ids[4] })
    const whole = await post('/generate', { input_ids: prompt, sampling_params: parameters })
    const stop = whole.body.text.slice(-6)
    const byText = await post('/generate', {
      input_ids: prompt,
      sampling_params: { ...parameters, stop: [stop] },
    })
    expect(byText.body.meta_info.finish_reason).toEqual({ type: 'stop', matched: stop })
  })

  it('scores a prompt at temperature 1, the first of its tokens without a number', async () => {
    const { body } = await post('/generate', {
      input_ids: prompt,
      sampling_params: { max_new_tokens: 1, temperature: 0.3 },
      return_logprob: true,
      logprob_start_len: 1,
    })
    const scores = await model.score(Int32Array.from(prompt), 2, { temperature: 1 }, { signal })
    expect(body.meta_info.input_token_logprobs).toEqual([
      [null, prompt[1], null],
      ...[...scores.logprobs].map((logprob, at) => [logprob, prompt[at + 2], null]),
    ])
  })

  it('hands back what was sampled when a request is aborted by its id', async () => {
    const long = { max_new_tokens: 80, ignore_eos: true, sampling_seed: 1 }
    const asked = post('/generate', {
      rid: 'to-be-aborted',
      input_ids: prompt,
      sampling_params: long,
      return_logprob: true,
    })
    const aborted = await post('/abort_request', { rid: 'to-be' })
    expect(aborted.status).toBe(200)
    const { body } = await asked
    const { finish_reason: finish, output_token_logprobs: pairs } = body.meta_info
    expect(['abort', 'length']).toContain(finish.type)
    expect(pairs.length).toBe(body.output_ids.length)
    expect((await post('/abort_request', { rid: 'nobody' })).status).toBe(200)
  })

  it('describes itself', async () => {
    for (const path of ['/model_info', '/get_model_info']) {
      const answer = await fetch(`${server.url}${path}`)
      expect(await answer.json()).toMatchObject({
        model_path: 'models/tiny',
        is_generation: true,
        weight_version: '0',
      })
    }
    expect((await fetch(`${server.url}/health`)).status).toBe(200)
    const info = (await (await fetch(`${server.url}/server_info`)).json()) as {
      context_length: number
    }
    expect(info.context_length).toBe(96)
  })

  it('refuses what it cannot do, in words', async () => {
    const refusals: [unknown, RegExp][] = [
      [{}, /either text or input_ids/],
      [{ input_ids: [1, 99_999] }, /input_ids\[1\] is 99999/],
      [{ input_ids: [] }, /empty/],
      [{ input_ids: Array.from({ length: 200 }, () => 1) }, /context length \(96 tokens\)/],
      [{ input_ids: [1], sampling_params: { temperature: -1 } }, /temperature must be/],
      [{ input_ids: [1], sampling_params: { regex: 'a+' } }, /regex is not possible/],
      [{ input_ids: [1], sampling_params: { frequency_penalty: 1 } }, /frequency_penalty/],
      [{ input_ids: [1], stream: 'yes' }, /stream must be true or false/],
    ]
    for (const [body, expected] of refusals) {
      const answer = await post('/generate', body)
      expect(answer.status).toBe(400)
      expect(answer.body.error.message).toMatch(expected)
    }
  })

  it('takes new weights from disk, with a name of their own', async () => {
    const { mkdtemp, rm } = await import('node:fs/promises')
    const folder = await mkdtemp(`${tmpdir()}/espalier-serve-`)
    try {
      await model.save(folder)
      const updated = await post('/update_weights_from_disk', {
        model_path: folder,
        weight_version: 'second',
      })
      expect(updated.body).toMatchObject({ success: true })
      const named = await post('/generate', {
        input_ids: prompt,
        sampling_params: { max_new_tokens: 1 },
      })
      expect(named.body.meta_info.weight_version).toBe('second')
      await post('/update_weights_from_disk', { model_path: folder })
      const counted = (await (await fetch(`${server.url}/model_info`)).json()) as {
        weight_version: string
      }
      expect(counted.weight_version).toBe(String(model.version()))
      const missing = await post('/update_weights_from_disk', { model_path: `${folder}/no` })
      expect(missing.status).toBe(400)
      expect(missing.body).toMatchObject({ success: false })
    } finally {
      await rm(folder, { recursive: true, force: true })
    }
  })
})

describe('serving OpenAI’s protocol', () => {
  it('completes token ids and texts', async () => {
    const body = {
      prompt,
      max_tokens: 12,
      temperature: 0.8,
      seed: 5,
      ignore_eos: true,
      logprobs: 1,
      return_token_ids: true,
    }
    const { body: answer } = await post('/v1/completions', body)
    const { ids, logprobs } = await direct()
    expect(answer.choices[0]).toMatchObject({ token_ids: ids, prompt_token_ids: prompt })
    expect(answer.choices[0].logprobs.token_logprobs).toEqual(logprobs)
    expect(answer.usage).toEqual({ prompt_tokens: 5, completion_tokens: 12, total_tokens: 17 })
    const events = await stream('/v1/completions', { ...body, stream: true })
    expect(events.flatMap(event => event.choices[0].token_ids)).toEqual(ids)
    expect(events.at(-1).choices[0].finish_reason).toBe('length')
    const text = await post('/v1/completions', { prompt: ' two three', max_tokens: 2 })
    expect(text.body.usage.prompt_tokens).toBe(2)
  })

  it('chats through its own template, with the tokens it saw and sampled, and candidates if asked', async () => {
    const tools = [
      {
        type: 'function',
        function: {
          name: 'count',
          parameters: { type: 'object', properties: { number: { type: 'integer' } } },
        },
      },
    ]
    const { body } = await post('/v1/chat/completions', {
      messages: [{ role: 'user', content: 'two' }],
      tools,
      max_tokens: 4,
      seed: 1,
      logprobs: true,
      return_token_ids: true,
    })
    const [choice] = body.choices
    expect(choice.message.role).toBe('assistant')
    expect(choice.token_ids.length).toBe(body.usage.completion_tokens)
    expect(choice.logprobs.content.length).toBe(body.usage.completion_tokens)
    expect(body.prompt_token_ids.slice(0, 1)).toEqual([1])
    expect(body.metadata.weight_version).toBe(String(model.version()))
    const { body: top } = await post('/v1/chat/completions', {
      messages: [{ role: 'user', content: 'two' }],
      max_tokens: 4,
      top_logprobs: 3,
    })
    for (const { top_logprobs: candidates } of top.choices[0].logprobs.content) {
      const logprobs = candidates.map(({ logprob }: { logprob: number }) => logprob)
      expect(logprobs).toHaveLength(3)
      expect(logprobs).toEqual(logprobs.toSorted((a: number, b: number) => b - a))
    }
    const [event] = await stream('/v1/chat/completions', {
      messages: [{ role: 'user', content: 'two' }],
      max_tokens: 4,
      stream: true,
    })
    expect(event.object).toBe('chat.completion.chunk')
    expect((await post('/v1/chat/completions', { messages: [] })).status).toBe(400)
    const models = (await (await fetch(`${server.url}/v1/models`)).json()) as {
      data: readonly [{ id: string }]
    }
    expect(models.data[0].id).toBe('models/tiny')
  })
})

describe('streams and secrets', () => {
  it('H4: neither SGLang’s nor OpenAI’s stream tells a secret that the model spells token by token', async () => {
    const { body: whole } = await post('/generate', {
      input_ids: prompt,
      sampling_params: parameters,
    })
    const secret = whole.text.slice(4, 24)
    expect(secret.length).toBeGreaterThan(8)
    keepSecret(secret)
    const shown = whole.text.replace(secret, '[redacted]')
    const events = await stream('/generate', {
      input_ids: prompt,
      sampling_params: parameters,
      stream: true,
    })
    expect(events.at(-1).text).toBe(shown)
    // A character may end in the middle where the last token does.
    for (const { text } of events) expect(shown).toContain(text.replace(/\ufffd+$/, ''))
    const { max_new_tokens: max_tokens, sampling_seed: seed, ...rest } = parameters
    const completion = { prompt, max_tokens, seed, ...rest, stream: true }
    const pieces = await stream('/v1/completions', completion)
    expect(pieces.map(({ choices: [{ text }] }) => text).join('')).toBe(shown)
  })
})
