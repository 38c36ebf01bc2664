import { Agent, request as httpRequest } from 'node:http'
import { setImmediate as nextTurn } from 'node:timers/promises'
import { describe, expect, it } from 'vitest'
import { bearer, hello, openCounting, openOver, openSaying } from '../../../test/open-gateways.ts'
import { call, openByteRenderer } from '../../../test/rolling.ts'
import { openOpenAiChatServer } from '../../../test/servers/openai-chat.ts'
import { openPolicy } from '../../run/settings/open-policy.ts'

interface Responded {
  readonly output: readonly object[]
  readonly usage: { readonly output_tokens_details: { readonly reasoning_tokens: number } }
}

/** The parts of streamed events that are looked at here. */
interface Streamed {
  readonly choices?: readonly { readonly delta: { readonly content?: string } }[]
  readonly content_block?: { readonly type: string }
  readonly response?: Responded
}

function eventsIn(text: string): readonly Streamed[] {
  const lines = text.split('\n').filter(line => line.startsWith('data: {'))
  return lines.map(line => JSON.parse(line.slice('data: '.length)) as Streamed)
}

function reasoningTokens({ usage }: Record<string, unknown>): number {
  const { completion_tokens_details: details } = usage as {
    completion_tokens_details: { reasoning_tokens: number }
  }
  return details.reasoning_tokens
}

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

  it('streams a retry the whole answer that it missed', async () => {
    const said = `<think>\nHm.\n</think>\nLook. ${call('look', { at: 'it' })}`
    const { open, url } = await openSaying([said, 'another'])
    const { token } = await open('t')
    const tools = [{ type: 'function', function: { name: 'look', parameters: { type: 'object' } } }]
    const streamed = async (retry: number) => {
      const counted = { 'x-stainless-retry-count': String(retry) }
      const headers = { 'content-type': 'application/json', ...bearer(token), ...counted }
      const body = JSON.stringify({ ...hello, tools, stream: true })
      const response = await fetch(`${url}/v1/chat/completions`, { method: 'POST', headers, body })
      const deltas = eventsIn(await response.text()).flatMap(
        ({ choices = [] }) => choices[0]?.delta ?? [],
      )
      return {
        words: deltas.map(({ content = '' }) => content).join(''),
        rest: deltas.filter(delta => delta.content === undefined),
      }
    }
    const first = await streamed(0)
    expect(first).toMatchObject({
      words: 'Look.',
      rest: [{ reasoning_content: 'Hm.' }, { tool_calls: [{ function: { name: 'look' } }] }, {}],
    })
    expect(await streamed(1)).toEqual(first)
  })

  it('refuses an idempotency key that comes with another request, in the shape of its dialect', async () => {
    const { open, send } = await openSaying(['first', 'second', 'third'])
    const { token } = await open('t')
    const ask = (path: string, body: object, key: string) =>
      send(path, body, { ...bearer(token), 'idempotency-key': key })
    const path = '/v1/chat/completions'
    const [one, again] = [await ask(path, hello, 'k'), await ask(path, hello, 'k')]
    expect(again.body.choices).toEqual(one.body.choices)
    const other = { ...hello, messages: [{ role: 'user', content: 'something else' }] }
    const message = expect.stringContaining('idempotency-key')
    expect(await ask(path, other, 'k')).toMatchObject({
      status: 409,
      body: { error: { type: 'conflict_error', message } },
    })
    expect(await ask('/v1/messages', { ...hello, max_tokens: 9 }, 'k')).toMatchObject({
      status: 409,
      body: { type: 'error', error: { type: 'invalid_request_error', message } },
    })
    expect((await ask(path, other, 'another')).status).toBe(200)
  })

  it('says the same streamed and whole, and sends the reasoning of a message as one piece', async () => {
    const thought = '<think>\nHow many\nare left?\n\n</think>\nSold 4.'
    const { open, url, send, trees, gateway } = await openSaying(Array(8).fill(thought))
    const { id, token } = await open('t')
    const streamed = async (path: string, body: object) => {
      const headers = { 'content-type': 'application/json', ...bearer(token) }
      const given = { method: 'POST', headers, body: JSON.stringify({ ...body, stream: true }) }
      return eventsIn(await (await fetch(`${url}${path}`, given)).text())
    }
    const reasoning = 'How many\nare left?'
    const chat = await send('/v1/chat/completions', hello, bearer(token))
    const said = { content: 'Sold 4.', reasoning_content: reasoning }
    expect(chat.body).toMatchObject({ choices: [{ message: said }] })
    expect(reasoningTokens(chat.body)).toBeGreaterThan(reasoning.length)
    const deltas = (await streamed('/v1/chat/completions', hello)).flatMap(
      ({ choices = [] }) => choices[0]?.delta ?? [],
    )
    expect(deltas.filter(delta => 'reasoning_content' in delta)).toEqual([
      { reasoning_content: reasoning },
    ])
    expect(deltas.map(({ content = '' }) => content).join('')).toBe('Sold 4.')
    const messages = { ...hello, max_tokens: 99 }
    const blocks = [{ thinking: reasoning }, { text: 'Sold 4.' }]
    expect((await send('/v1/messages', messages, bearer(token))).body).toMatchObject({
      content: blocks,
    })
    const kinds = (await streamed('/v1/messages', messages)).flatMap(
      ({ content_block: block }) => block?.type ?? [],
    )
    expect(kinds).toEqual(['thinking', 'text'])
    const input = { input: 'hello' }
    const whole = (await send('/v1/responses', input, bearer(token))).body as unknown as Responded
    const { response } = (await streamed('/v1/responses', input)).at(-1)!
    for (const { output, usage } of [whole, response!]) {
      expect(output).toMatchObject([
        { summary: [{ text: reasoning }] },
        { content: [{ text: 'Sold 4.' }] },
      ])
      expect(usage.output_tokens_details.reasoning_tokens).toBe(reasoningTokens(chat.body))
    }
    const back = { role: 'assistant', ...said }
    const more = [...hello.messages, back, { role: 'user', content: 'and now?' }]
    await send('/v1/chat/completions', { ...hello, messages: more }, bearer(token))
    await gateway.attempts.close(gateway.attempts.get(id)!)
    const causes = trees[0]!.trajectories[0]!.events.map(({ kind }) => kind)
    expect(causes.filter(kind => kind === 'fork:again')).toHaveLength(5)
    expect(causes.filter(kind => kind === 'fork:reasoning' || kind === 'fork:answer')).toEqual([])
  })

  it('refuses to tell candidates that its policy does not give', async () => {
    const { open, send } = await openSaying(['ok'])
    const { token } = await open('t')
    const message = expect.stringContaining('this policy gives no other candidates per token')
    const asked = { ...hello, logprobs: true, top_logprobs: 3 }
    expect(await send('/v1/chat/completions', asked, bearer(token))).toMatchObject({
      status: 400,
      body: { error: { code: 'unsupported_value', message } },
    })
    const responses = { input: 'hello', top_logprobs: 3 }
    expect((await send('/v1/responses', responses, bearer(token))).status).toBe(400)
    const contents = [{ parts: [{ text: 'hello' }] }]
    const google = { contents, generationConfig: { responseLogprobs: true, logprobs: 3 } }
    const path = '/v1beta/models/m:generateContent'
    expect(await send(path, google, bearer(token))).toMatchObject({
      status: 400,
      body: { error: { status: 'INVALID_ARGUMENT', message } },
    })
    const none = { ...hello, logprobs: true, top_logprobs: 0 }
    expect((await send('/v1/chat/completions', none, bearer(token))).status).toBe(200)
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
    expect(attempt.ended?.outcome).toEqual({ kind: 'truncated', limit: 'turns' })
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
