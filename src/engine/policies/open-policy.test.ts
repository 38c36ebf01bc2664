import { mkdtemp, readFile, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { openLlamaCppServer } from '../../../test/servers/llama-cpp.ts'
import { openOpenAiChatServer } from '../../../test/servers/openai-chat.ts'
import { openSglangServer } from '../../../test/servers/sglang.ts'
import { openVllmServer } from '../../../test/servers/vllm.ts'
import { expectTokens, sampleRequest } from '../../base/core/conformance/policy.conformance.ts'
import { openPolicy } from './open-policy.ts'
import { scripted } from './scripted.ts'

const call = () => ({ signal: AbortSignal.timeout(50_000) })

describe('openPolicy', () => {
  it.each([
    ['sglang', openSglangServer],
    ['vllm', openVllmServer],
    ['llama-cpp', openLlamaCppServer],
    ['openai', openOpenAiChatServer],
  ] as const)('opens a server: %s', async (scheme, open) => {
    await using server = await open({ fault: index => (index === 0 ? 'busy' : undefined) })
    await using policy = await openPolicy(`${scheme}:${server.url}`, {
      retries: { firstWaitSeconds: 0.01 },
    })
    expect((await policy.sample(sampleRequest(), call())).finish).toEqual({ kind: 'stop' })
    expect(policy.name.startsWith(`${scheme}:${server.url}`)).toBe(true)
  })

  it('balances several, which share their versions', async () => {
    await using one = await openSglangServer({ version: () => 'step-a' })
    await using two = await openSglangServer({ version: () => 'step-a' })
    await using policy = await openPolicy([`sglang:${one.url}`, `sglang:${two.url}`], { limit: 8 })
    const samples = await Promise.all(
      ['a', 'b', 'c', 'd'].map(session => policy.sample(sampleRequest({ session }), call())),
    )
    expect(samples.map(sample => expectTokens(sample).segment.version.to)).toEqual([0, 0, 0, 0])
    expect(new Set(samples.map(({ usage }) => usage.server)).size).toBe(2)
  })

  it('records what it opened, and replays it', async () => {
    const folder = await mkdtemp(join(tmpdir(), 'espalier-'))
    const script = join(folder, 'script.jsonl')
    const record = join(folder, 'cassette.jsonl')
    await writeFile(script, '{"text":"hi"}\n')
    const encode = (text: string): Int32Array => Int32Array.from(Buffer.from(text))
    const policy = await openPolicy(`scripted:${script}`, { encode, record })
    const sample = await policy.sample(sampleRequest(), call())
    await policy[Symbol.asyncDispose]()
    const replay = await openPolicy(`replay:${record}`)
    expect(await replay.sample(sampleRequest(), call())).toEqual(sample)
    expect((await readFile(record, 'utf8')).split('\n').length).toBe(3)
  })

  it('takes schemes of others', async () => {
    const policy = await openPolicy('embedded', {
      schemes: {
        embedded: { leadsTo: 'file', open: rest => scripted([{ ids: [rest.length] }]) },
      },
    })
    const sample = expectTokens(await policy.sample(sampleRequest(), call()))
    expect([...sample.segment.ids]).toEqual([0])
  })

  it('tells a wrong file of answers as a mistake in that file, not as a failure of a server', async () => {
    const path = join(await mkdtemp(join(tmpdir(), 'espalier-script-')), 'answers.jsonl')
    await writeFile(path, '{"text":"4"}\n{"txt":"4"}\n')
    const failure: Error = await openPolicy(`scripted:${path}`).then(
      () => expect.fail('opened'),
      error => error,
    )
    expect([failure.name, failure.message]).toEqual([
      'Error',
      `${path}, line 2: an answer has no "txt". Known: text, ids, logprobs, task`,
    ])
    await writeFile(path, '\uFEFF{"ids":[1]}\n')
    await using policy = await openPolicy(`scripted:${path}`)
    expect(policy.name).toContain('scripted:')
  })

  it.each([
    ['sgalng:http://x', 'No policy scheme "sgalng:" in "sgalng:http://x". Known: '],
    ['sgalng:http://x', 'tinker:. Did you mean "sglang:"?'],
    ['sgalng:http://x', 'Known: sglang:, vllm:, llama-cpp:, openai:, scripted:, replay:, tinker:.'],
    ['toString:x', 'No policy scheme'],
    ['sglang:', 'names no server or file'],
    ['sglang:localhost', '"localhost" is not a URL'],
    ['sglang:localhost:30000', 'Did you mean "http://localhost:30000"?'],
    ['sglang:ftp://x', 'must begin with http:// or https://'],
    ['sglang:http://me:secret@x', 'Give the key as an option'],
    [
      'sglang:http://x/?a=1',
      'sglang has no parameter "a". Known: logprobs, update, experts, session.',
    ],
    ['vllm:http://x?logprobs=cooked', 'logprobs is raw or processed, not "cooked"'],
    ['vllm:http://x?endpont=completions', 'Did you mean "endpoint"?'],
  ])('refuses %s', async (uri, message) => {
    const failure = await openPolicy(uri).catch(String)
    expect(failure).toContain(message)
    if (uri.includes('@')) expect(failure).not.toContain('secret')
  })
})
