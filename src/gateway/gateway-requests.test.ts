import { Agent, request as httpRequest } from 'node:http'
import { setImmediate as nextTurn } from 'node:timers/promises'
import { describe, expect, it } from 'vitest'
import { bearer, hello, openCounting, openOver, openSaying } from '../../test/open-gateways.ts'
import { call, openByteRenderer } from '../../test/rolling.ts'
import { openOpenAiChatServer } from '../../test/servers/openai-chat.ts'
import { openPolicy } from '../settings/open-policy.ts'

describe('requests', () => {
  it('gives a retry the answer that it missed, and a second request one of its own', async () => {
    const { open, send, gateway, trees } = await openSaying(['first', 'second'])
    const { id, token } = await open('t')
    const ask = (retry: number) =>
      send('/v1/chat/completions', hello, {
        ...bearer(token),
        'x-stainless-retry-count': String(retry),
      })
    const said = async (retry: number) =>
      JSON.stringify((await ask(retry)).body.choices).match(/first|second/)?.[0]
    expect([await said(0), await said(1), await said(0)]).toEqual(['first', 'first', 'second'])
    await gateway.attempts.close(gateway.attempts.get(id)!)
    expect(trees[0]!.trajectories[0]!.turns).toHaveLength(2)
  })

  it('keeps what was sampled of a request whose client went away', async () => {
    const { open, url, gateway, trees } = await openCounting(() => Number.POSITIVE_INFINITY)
    const { id, token } = await open('gone')
    const stop = new AbortController()
    const headers = { 'content-type': 'application/json', ...bearer(token) }
    const asked = fetch(`${url}/v1/chat/completions`, {
      method: 'POST',
      headers,
      body: JSON.stringify({ ...hello, stream: true }),
      signal: stop.signal,
    }).catch(() => 'gone')
    const attempt = gateway.attempts.get(id)!
    while (attempt.running === 0) await nextTurn()
    stop.abort()
    expect(await asked).toBe('gone')
    while (attempt.running > 0) await nextTurn()
    await gateway.attempts.close(attempt, { reward: 0 })
    expect(trees[0]!.trajectories[0]).toMatchObject({
      turns: [{ finish: { kind: 'abort' } }],
      usage: { sampled: 1 },
    })
  })

  it('stops only what is under way of the attempts that share a connection', async () => {
    const delays = [0, Number.POSITIVE_INFINITY, 0, Number.POSITIVE_INFINITY]
    const { open, url, gateway, trees } = await openCounting(() => delays.shift()!)
    const agent = new Agent({ keepAlive: true, maxSockets: 1 })
    const ask = (token: string) => {
      const headers = { 'content-type': 'application/json', ...bearer(token) }
      const path = `${url}/v1/chat/completions`
      const request = httpRequest(path, { method: 'POST', agent, headers })
      const code = new Promise<number>(resolve => {
        request.on('response', answer =>
          answer.resume().on('end', () => resolve(answer.statusCode!)),
        )
        request.on('error', () => resolve(0))
      })
      request.end(JSON.stringify(hello))
      return { request, code }
    }
    const [first, second, third] = [await open('a'), await open('b'), await open('c')]
    const attemptOf = ({ id }: { id: string }) => gateway.attempts.get(id)!
    const running = async (attempt: ReturnType<typeof attemptOf>) => {
      while (attempt.running === 0) await nextTurn()
    }
    expect(await ask(first.token).code).toBe(200)
    const cut = ask(second.token)
    await running(attemptOf(second))
    await gateway.attempts.close(attemptOf(second), { reward: 0 })
    expect(await cut.code).toBe(410)
    expect(await ask(third.token).code).toBe(200)
    const left = ask(third.token)
    await running(attemptOf(third))
    left.request.destroy()
    expect(await left.code).toBe(0)
    while (attemptOf(third).running > 0) await nextTurn()
    await gateway.attempts.close(attemptOf(first), { reward: 0 })
    await gateway.attempts.close(attemptOf(third), { reward: 0 })
    agent.destroy()
    const finishes = trees.map(({ trajectories }) =>
      trajectories.flatMap(({ turns }) => turns.map(({ finish }) => finish.kind)),
    )
    expect(finishes).toEqual([['abort'], ['stop'], ['stop', 'abort']])
  })

  it('answers several at once, stops at texts, asks for forms in words, hides refused tools', async () => {
    const { open, send, trees, gateway } = await openSaying([
      'one',
      'up to HERE and on',
      'it is SO',
      '{"n": 1}',
      call('look', {}).replace('<|im_end|>', ''),
    ])
    const { id, token } = await open('t')
    const ask = async (more: object) => {
      const { body } = await send('/v1/chat/completions', { ...hello, ...more }, bearer(token))
      return body as { choices: { message: { content: string; tool_calls?: object[] } }[] }
    }
    const several = await ask({ n: 2 })
    expect(several.choices.map(({ message }) => message.content)).toEqual(['one', 'one'])
    const schema = { type: 'object', properties: { n: { type: 'number' } } }
    await ask({ stop: ['HERE'] })
    const stopping = { ...hello, max_tokens: 99, stop_sequences: ['SO'] }
    const stopped = await send('/v1/messages', stopping, { 'x-api-key': token })
    expect(stopped.body).toMatchObject({ stop_reason: 'stop_sequence', stop_sequence: 'SO' })
    await ask({ response_format: { type: 'json_schema', json_schema: { name: 'n', schema } } })
    const tools = [{ type: 'function', function: { name: 'look', parameters: schema } }]
    await ask({ tools, tool_choice: 'none' })
    await gateway.attempts.close(gateway.attempts.get(id)!)
    const renderer = await openByteRenderer()
    const texts = trees[0]!.nodes.map(({ segment }) => renderer.decode(segment.ids))
    expect(texts.some(text => text.includes('"n":{"type":"number"}'))).toBe(true)
    expect(trees[0]!.trajectories[0]!.turns).toHaveLength(6)
  })

  it('tells in every dialect what was asked for and is not so, and counts it', async () => {
    const { open, send, trees, gateway } = await openSaying(Array(6).fill('{"n": "one"}'))
    const { id, token } = await open('t')
    const schema = { type: 'object', properties: { n: { type: 'number' } } }
    const ask = async (path: string, more: object) =>
      JSON.stringify((await send(path, { ...hello, ...more }, bearer(token))).body)
    const format = { type: 'json_schema', json_schema: { name: 'n', schema } }
    const problem = 'the answer does not fit its schema: '
    const unmet = `"unmet":[{"what":"response-format","problem":"${problem}`
    expect(await ask('/v1/chat/completions', { response_format: format })).toContain(unmet)
    const json = { response_format: { type: 'json_object' } }
    expect(await ask('/v1/chat/completions', json)).not.toContain('unmet')
    const text = { format: { type: 'json_schema', name: 'n', schema } }
    expect(await ask('/v1/responses', { input: 'hello', text })).toContain(unmet)
    const tools = [{ name: 'look', input_schema: schema }]
    const choice = { max_tokens: 99, tools, tool_choice: { type: 'any' } }
    const missing = '"unmet":[{"what":"tool-choice","problem":"no tool was called"}]'
    expect(await ask('/v1/messages', choice)).toContain(missing)
    const generationConfig = { responseMimeType: 'application/json', responseSchema: schema }
    const contents = [{ role: 'user', parts: [{ text: 'hello' }] }]
    const google = await ask('/v1beta/models/m:generateContent', { contents, generationConfig })
    expect(google).toContain(`"finishMessage":"${problem}`)
    await gateway.attempts.close(gateway.attempts.get(id)!)
    const kinds = trees[0]!.trajectories[0]!.events.map(({ kind }) => kind)
    expect(kinds.filter(kind => kind === 'unmet:response-format')).toHaveLength(3)
    expect(kinds).toContain('unmet:tool-choice')
  })

  it('tells agents when their limits are reached, and when their context is full', async () => {
    const { open, send, gateway } = await openSaying(['a', 'b'], {
      parts: { limits: { turns: 1, context: 200 } },
    })
    const { id, token } = await open('t')
    const long = { ...hello, messages: [{ role: 'user', content: 'x'.repeat(300) }] }
    expect(await send('/v1/chat/completions', long, bearer(token))).toMatchObject({
      status: 400,
      body: { error: { code: 'context_length_exceeded' } },
    })
    expect((await send('/v1/chat/completions', hello, bearer(token))).status).toBe(200)
    expect((await send('/v1/chat/completions', hello, bearer(token))).status).toBe(410)
    const attempt = gateway.attempts.get(id)!
    await gateway.attempts.close(attempt, { reward: 1 })
    expect(attempt.outcome).toEqual({ kind: 'truncated', limit: 'turns' })
  })

  it('marks what a chat-only server said as encoded again, and refuses images its template cannot write', async () => {
    await using server = await openOpenAiChatServer({ isStrict: true })
    const policy = await openPolicy(`openai:${server.url}#served`)
    const { open, send, trees } = await openOver(() => policy)
    const { id, token } = await open('t')
    expect((await send('/v1/chat/completions', hello, bearer(token))).status).toBe(200)
    const image = { type: 'image_url', image_url: { url: 'data:image/png;base64,AAAA' } }
    const seen = { ...hello, messages: [{ role: 'user', content: [image] }] }
    const answer = await send('/v1/chat/completions', seen, bearer(token))
    expect(answer).toMatchObject({ status: 400, body: { error: { code: 'unsupported_value' } } })
    await send(`/attempts/${id}/close`, { reward: 1 })
    expect(trees[0]!.trajectories[0]!.fidelity.kind).toBe('re-encoded')
  })

  it('answers many attempts at once', async () => {
    const { open, send, groups } = await openCounting(() => 3, { parts: { group: 8 } })
    const attempts = await Promise.all(
      Array.from({ length: 128 }, (_, index) => open(`task ${index % 16}`)),
    )
    await Promise.all(
      attempts.map(async ({ id, token }) => {
        const { status } = await send('/v1/chat/completions', hello, bearer(token))
        expect(status).toBe(200)
        await send(`/attempts/${id}/close`, { reward: 1 })
      }),
    )
    expect(groups).toHaveLength(16)
    expect(groups.every(({ members }) => members.length === 8)).toBe(true)
  })
})
