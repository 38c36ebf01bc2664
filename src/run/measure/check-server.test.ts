import type { ModelRenderer } from '@espalier/text/chat'
import { describe, expect, it } from 'vitest'
import { openServing, type Turn } from '../../../test/servers/serving.ts'
import { openVllmServer } from '../../../test/servers/vllm.ts'
import { byteModel, openRenderer } from '../settings/model-source.ts'
import { checkServer } from './check-server.ts'

const { signal } = new AbortController()

type Route = (turn: Turn) => void

function serve(others: Readonly<Record<string, Route>>) {
  return openServing({}, { generations: {}, others, tooLong: {} })
}

/** Tokenizes as a server does, or wrongly where it says so. */
function tokenizing(renderer: ModelRenderer, field: string, isWrong = false): Route {
  return ({ body, json }) => {
    const ids = [...renderer.tokenizer.encode(body[field])]
    json({ tokens: isWrong ? ids.map(id => (id === 258 ? 257 : id)) : ids })
  }
}

const model: Route = ({ json }) => json({ model_path: 'test/model' })

describe('checkServer', () => {
  it('finds an SGLang server that tokenizes alike', async () => {
    const renderer = await openRenderer(byteModel)
    await using server = await serve({
      '/model_info': model,
      '/tokenize': tokenizing(renderer, 'prompt'),
    })
    const check = await checkServer(`sglang:${server.url}`, renderer, { signal, key: 'secret' })
    expect(check).toMatchObject({
      policy: `sglang:${server.url}`,
      model: 'test/model',
      compared: 5,
      differences: [],
      notes: [],
    })
    const asked = server.seen.filter(({ path }) => path === '/tokenize')
    expect(asked.map(({ body }) => body.prompt)).toContain('<|im_end|>')
    expect(asked.every(({ body }) => body.add_special_tokens === false)).toBe(true)
    expect(asked[0]?.headers.authorization).toBe('Bearer secret')
  })

  it('names what a vLLM server tokenizes otherwise, stop tokens among it', async () => {
    const renderer = await openRenderer(byteModel)
    await using server = await serve({
      '/v1/models': ({ json }) => json({ data: [{ id: 'served', root: 'test/model' }] }),
      '/tokenize': tokenizing(renderer, 'prompt', true),
    })
    const options = { signal, servedModel: 'served' }
    const { differences } = await checkServer(`vllm:${server.url}`, renderer, options)
    expect(differences).toContain('"<|im_end|>" is [258] here and [257] on the server')
    expect(server.seen.find(({ path }) => path === '/tokenize')?.body.model).toBe('served')
  })

  it('notes another template of a llama.cpp server, which prompts of tokens do not use', async () => {
    const renderer = await openRenderer(byteModel)
    const props =
      (template: string): Route =>
      ({ json }) =>
        json({
          model_path: 'model.gguf',
          default_generation_settings: { n_ctx: 4096 },
          chat_template: template,
        })
    const tokenize = tokenizing(renderer, 'content')
    await using same = await serve({
      '/props': props(`${renderer.chat.source}\n`),
      '/tokenize': tokenize,
    })
    expect(await checkServer(`llama-cpp:${same.url}`, renderer, { signal })).toMatchObject({
      model: 'model.gguf',
      differences: [],
      notes: [],
    })
    expect(same.seen.at(-2)?.body.parse_special).toBe(true)
    await using other = await serve({ '/props': props('{{ x }}'), '/tokenize': tokenize })
    expect(await checkServer(`llama-cpp:${other.url}`, renderer, { signal })).toMatchObject({
      differences: [],
      notes: [expect.stringContaining('another chat template')],
    })
  })

  it('says where nothing can be compared', async () => {
    const renderer = await openRenderer(byteModel)
    await using server = await serve({ '/model_info': model })
    expect(await checkServer(`sglang:${server.url}`, renderer, { signal })).toMatchObject({
      compared: 0,
      differences: [],
      notes: [expect.stringContaining('has no endpoint to tokenize')],
    })
    await using chat = await serve({
      '/v1/models': ({ json }) => json({ data: [{ id: 'served' }] }),
    })
    expect(await checkServer(`openai:${chat.url}/v1`, renderer, { signal })).toMatchObject({
      notes: [expect.stringContaining('no tokenizer that could be asked')],
    })
  })

  it('draws tokens, and says so where none can be drawn', async () => {
    const renderer = await openRenderer(byteModel)
    await using mute = await serve({ '/model_info': model })
    const without = await checkServer(`sglang:${mute.url}`, renderer, { signal })
    expect(without).toMatchObject({ trial: undefined, problem: expect.stringContaining('404') })
    await using server = await openVllmServer()
    const { trial } = await checkServer(`vllm:${server.url}`, renderer, { signal })
    expect(trial).toMatchObject({
      repeatsSeeds: expect.any(Boolean),
      difference: expect.any(Number),
    })
    // The answers of this server are of no model, so neither hypothesis explains them.
    expect(trial?.evidence?.tokens).toBeGreaterThan(0)
  })

  it('shows the place where tokenizations part', async () => {
    const renderer = await openRenderer(byteModel)
    await using server = await serve({
      '/v1/models': ({ json }) => json({ data: [{ id: 'served' }] }),
      '/tokenize': ({ body, json }) => {
        const ids = [...renderer.tokenizer.encode(body.prompt)]
        json({ tokens: ids.map((id, index) => (index === 20 ? 7 : id)) })
      },
    })
    const { differences } = await checkServer(`vllm:${server.url}`, renderer, { signal })
    const [first] = differences
    expect(first).toMatch(/is \[…, (\d+, \d+), \d+, .* here and \[…, \1, 7, .* on the server/)
  })

  it('fails where the server does', async () => {
    const renderer = await openRenderer(byteModel)
    await using server = await serve({
      '/model_info': model,
      '/tokenize': ({ response }) => response.writeHead(500).end('{}'),
    })
    await expect(checkServer(`sglang:${server.url}`, renderer, { signal })).rejects.toThrow('500')
  })
})
