import { once } from 'node:events'
import { rmSync, symlinkSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { baseModel } from '../../src/learn/model/embedded.ts'
import { openModel } from '../../src/learn/model/model.ts'
import { runCommand } from '../command-line.ts'
import type { Foreign } from '../foreign.ts'
import { espalier, type JsonRow, readLines, type Started, scratch, start } from './cli.ts'

const folder = scratch()
let served: Started
let url: string

beforeAll(async () => {
  const weights = ['--weights', folder]
  served = start([
    'serve',
    '--model',
    baseModel,
    '--port',
    '0',
    '--threads',
    '1',
    '--json',
    ...weights,
  ])
  const [line] = (await once(served.child.stdout!, 'data')) as [Buffer]
  const told = JSON.parse(line.toString()) as { url: string; model: string }
  expect(told.model).toBe(baseModel)
  url = told.url
})

afterAll(async () => {
  served.child.kill('SIGINT')
  const { code, stderr } = await served.finished
  rmSync(folder, { recursive: true, force: true })
  expect(code, stderr).toBe(0)
})

/** The rows that rolling at the desk gives, without the name of their run. */
async function rowsBy(policy: string, ...flags: readonly string[]): Promise<readonly JsonRow[]> {
  const run = await rollDesk(policy, ...flags)
  const rows = `${run}.jsonl`
  expect((await runCommand(['export', run, '--to', 'jsonl', '--out', rows])).code).toBe(0)
  return readLines(rows).map(row => ({ ...row, run: '' }))
}

let runs = 0

async function rollDesk(policy: string, ...flags: readonly string[]): Promise<string> {
  const run = join(folder, `run-${runs++}`)
  const desk = ['--environment', 'desk', '--tasks', '8', '--group', '2']
  const rolled = await runCommand(['roll', '--policy', policy, ...desk, ...flags, '--out', run])
  expect(rolled.code, rolled.stderr).toBe(0)
  return run
}

interface Answer {
  readonly status: number
  readonly body: Foreign
}

async function post(path: string, body: object): Promise<Answer> {
  const answer = await send(path, body)
  const text = await answer.text()
  return { status: answer.status, body: text === '' ? undefined : JSON.parse(text) }
}

function send(path: string, body: object): Promise<Response> {
  const headers = { 'content-type': 'application/json' }
  return fetch(`${url}${path}`, { method: 'POST', headers, body: JSON.stringify(body) })
}

async function get(path: string): Promise<Answer> {
  const answer = await fetch(`${url}${path}`)
  const text = await answer.text()
  return { status: answer.status, body: text === '' ? undefined : JSON.parse(text) }
}

/** The events of a stream as they come; `[DONE]` ends it. */
async function* events(answer: Response): AsyncGenerator<Foreign> {
  let rest = ''
  for await (const chunk of answer.body!.pipeThrough(new TextDecoderStream())) {
    const parts = (rest + chunk).split('\n\n')
    rest = parts.pop()!
    for (const part of parts) {
      if (part !== 'data: [DONE]') yield JSON.parse(part.slice('data: '.length))
    }
  }
}

const ask = { messages: [{ role: 'user', content: 'cancel order 7' }], max_tokens: 8, seed: 5 }

describe('rolling against espalier serve', () => {
  it.each([
    ['chains', []],
    ['chains, cooler', ['--temperature', '0.7', '--top-p', '0.9']],
    ['trees, siblings in one request', ['--strategy', 'tree', '--leaves', '4']],
    ['steps', ['--strategy', 'step']],
  ])('[S1] gives the rows that the model gives in process: %s', async (_, flags) => {
    const expected = await rowsBy('embedded', ...flags)
    expect(expected.length).toBeGreaterThan(10)
    expect(await rowsBy(`sglang:${url}`, ...flags)).toEqual(expected)
  })

  it('[S1] stops where guards stop it in process', async () => {
    const guard = ['--guard', 'repetition:cycle=4,times=2', '--temperature', '2', '--seed', '7']
    const expected = await rowsBy('embedded', ...guard)
    expect(expected.map(({ outcome }) => outcome)).toContainEqual({
      kind: 'truncated',
      limit: 'guard:repetition',
    })
    expect(await rowsBy(`sglang:${url}`, ...guard)).toEqual(expected)
  })

  it('[S1] gives them over vLLM’s and OpenAI’s dialects too, ids and log-probabilities', async () => {
    const expected = await rowsBy('embedded')
    for (const policy of [`vllm:${url}`, `openai:${url}/v1`]) {
      const rows = await rowsBy(policy, '--model', baseModel)
      expect(rows.map(tokensOf)).toEqual(expected.map(tokensOf))
    }
  })

  it('passes the audit over HTTP, as close as in process', async () => {
    const run = await rollDesk(`sglang:${url}`)
    for (const policy of [`sglang:${url}`, 'embedded']) {
      const words = ['audit', run, '--json', '--tolerance', '1e-4', '--policy', policy]
      const { code, stdout } = await runCommand(words)
      expect(code, stdout).toBe(0)
      const { tokens, checked, wrong } = JSON.parse(stdout)
      expect({ checked, wrong }).toEqual({ checked: tokens, wrong: 0 })
      expect(tokens).toBeGreaterThan(100)
    }
  })
})

function tokensOf({ task, ids, mask, logprobs, reward }: JsonRow): object {
  return { task, ids, mask, logprobs, reward }
}

/** Keeps a model that learned something else from the base: one large step. */
async function keepOtherWeights(out: string): Promise<void> {
  await using model = await openModel({ folder: baseModel }, { threads: 1 })
  const ids = Int32Array.from({ length: 64 }, (_, place) => (place * 7) % 300)
  const row = { ids, mask: new Uint8Array(64).fill(1, 1), temperature: 1 }
  await model.gradient([row], () => ({ logprobGradient: new Float64Array(64).fill(-1) }))
  await model.applyGradient({ learningRate: 0.1, clip: 1 })
  await model.save(out)
}

describe('what espalier serve speaks', () => {
  it('tells that it lives, what it serves, and how its weights are called', async () => {
    expect((await get('/health')).status).toBe(200)
    expect((await get('/model_info')).body).toMatchObject({
      model_path: baseModel,
      is_generation: true,
      weight_version: '0',
    })
    expect((await get('/v1/models')).body.data[0].id).toBe(baseModel)
  })

  it('says the same in every dialect: chat, completions, /generate, whole and streamed', async () => {
    const chat = await post('/v1/chat/completions', {
      ...ask,
      logprobs: true,
      return_token_ids: true,
    })
    const [{ prompt_token_ids: prompt, response_token_ids: ids, logprobs }] = chat.body.choices
    expect(ids.length).toBeGreaterThan(2)
    const completed = await post('/v1/completions', {
      prompt,
      max_tokens: 8,
      seed: 5,
      logprobs: 1,
      return_token_ids: true,
    })
    expect(completed.body.choices[0].token_ids).toEqual(ids)
    const request = {
      input_ids: prompt,
      sampling_params: { max_new_tokens: 8, sampling_seed: 5, temperature: 1 },
      return_logprob: true,
    }
    const whole = await post('/generate', request)
    expect(whole.body.output_ids).toEqual(ids)
    const pairs: [number, number][] = whole.body.meta_info.output_token_logprobs
    expect(pairs.map(([logprob]) => logprob)).toEqual(
      logprobs.content.map(({ logprob }: { logprob: number }) => logprob),
    )
    const streamed = []
    for await (const event of events(await send('/generate', { ...request, stream: true }))) {
      streamed.push(event)
    }
    for (const { output_ids: soFar } of streamed) expect(soFar).toEqual(ids.slice(0, soFar.length))
    expect(streamed.at(-1).meta_info.output_token_logprobs).toEqual(pairs)
    expect(streamed.at(-1).meta_info.finish_reason).toEqual(whole.body.meta_info.finish_reason)
  })

  it('hands back what it had sampled when it is aborted', async () => {
    const request = (rid: string) => ({
      rid,
      input_ids: [2, 264, 0, 3],
      sampling_params: { max_new_tokens: 1000, ignore_eos: true, sampling_seed: 1 },
      return_logprob: true,
    })
    // Many at once, so that none is through before it is aborted.
    const others = Array.from({ length: 63 }, (_, index) => post('/generate', request(`a${index}`)))
    let last: Answer['body']
    for await (const event of events(await send('/generate', { ...request('a'), stream: true }))) {
      if (!last) expect((await post('/abort_request', { rid: 'a' })).status).toBe(200)
      last = event
    }
    for (const answer of [last, ...(await Promise.all(others)).map(({ body }) => body)]) {
      expect(answer.meta_info.finish_reason.type).toBe('abort')
      expect(answer.output_ids.length).toBeLessThan(1000)
      expect(answer.meta_info.output_token_logprobs.length).toBe(answer.output_ids.length)
    }
    expect(last.output_ids.length).toBeGreaterThan(0)
  })

  it('refuses what it cannot do, in words', async () => {
    const refused = await post('/generate', { input_ids: [1, 1_000_000] })
    expect(refused.status).toBe(400)
    expect(refused.body.error.message).toContain('input_ids[1] is 1000000')
    const nowhere = await espalier('serve', '--model', folder)
    expect([nowhere.code, nowhere.stderr]).toEqual([2, expect.stringContaining('config.json')])
    expect((await espalier('serve', '--port', '70000')).code).toBe(2)
    const open = await espalier('serve', '--host', '0.0.0.0', '--port', '0')
    expect([open.code, open.stderr]).toEqual([
      2,
      expect.stringContaining('lets others in, who need a token'),
    ])
  })

  it('H2: takes weights from nowhere but the folder it was told', async () => {
    const link = join(folder, 'link')
    symlinkSync(tmpdir(), link)
    for (const path of ['/', '/etc', tmpdir(), baseModel, link, `${folder}/..`, `${folder}x`]) {
      const refused = await post('/update_weights_from_disk', { model_path: path })
      expect([refused.status, refused.body.success]).toEqual([400, false])
      expect(refused.body.message).toContain('taken only from the folders')
    }
  })

  it('takes new weights from disk: later rows carry their version', async () => {
    const other = join(folder, 'other')
    await keepOtherWeights(other)
    const before = await post('/v1/chat/completions', { ...ask, return_token_ids: true })
    const updated = await post('/update_weights_from_disk', { model_path: other })
    expect(updated.body).toMatchObject({ success: true })
    const version = (await get('/model_info')).body.weight_version
    expect(version).not.toBe('0')
    const after = await post('/v1/chat/completions', { ...ask, return_token_ids: true })
    expect(after.body.metadata.weight_version).toBe(version)
    expect(after.body.choices[0].response_token_ids).not.toEqual(
      before.body.choices[0].response_token_ids,
    )
    const rows = await rowsBy(`sglang:${url}`, '--max-turns', '2')
    const versions = rows.flatMap(row => row.versions.map(([, , policyVersion]) => policyVersion))
    expect(new Set(versions)).toEqual(new Set([Number(version)]))
  })
})
