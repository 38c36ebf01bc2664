import { once } from 'node:events'
import { Agent, request as httpRequest } from 'node:http'
import { setImmediate as nextTurn } from 'node:timers/promises'
import { afterEach, describe, expect, it } from 'vitest'
import { openCountingPolicy } from '../../test/counting-policy.ts'
import { openTestGateway, type TestGatewayOptions } from '../../test/gateway.ts'
import { call, openByteRenderer, script } from '../../test/rolling.ts'
import { openOpenAiChatServer } from '../../test/servers/openai-chat.ts'
import type { ModelRenderer } from '../chat/renderer.ts'
import type { GroupId, TaskId } from '../core/ids.ts'
import type { Policy } from '../core/policy.ts'
import { openPolicy } from '../settings/open-policy.ts'

type Gateway = Awaited<ReturnType<typeof openTestGateway>>

const opened: Gateway[] = []

afterEach(async () => {
  for (const gateway of opened.splice(0)) await gateway[Symbol.asyncDispose]()
})

async function openOver(
  policyOf: (renderer: ModelRenderer) => Policy,
  options: Partial<TestGatewayOptions> = {},
): Promise<Gateway> {
  const renderer = await openByteRenderer()
  const gateway = await openTestGateway({ policy: policyOf(renderer), renderer, ...options })
  opened.push(gateway)
  return gateway
}

const openSaying = (texts: readonly string[], options: Partial<TestGatewayOptions> = {}) =>
  openOver(
    renderer =>
      script(
        renderer,
        texts.map(text => ({ text: `${text}<|im_end|>` })),
      ),
    options,
  )

const openCounting = (
  delay: () => number,
  options: Partial<TestGatewayOptions> = {},
): Promise<Gateway> =>
  openOver(
    renderer => openCountingPolicy({ length: () => 5, delay, end: renderer.stopIds[0]! }).policy,
    options,
  )

const hello = { model: 'm', messages: [{ role: 'user', content: 'hello' }] }
const bearer = (token: string) => ({ authorization: `Bearer ${token}` })

describe('who may use a gateway', () => {
  const secrets = { control: 'c-secret', model: 'm-secret', read: 'r-secret' }

  it('takes the token of an attempt where clients carry keys, for that attempt only', async () => {
    const { open, send } = await openSaying(['one', 'two', 'three'])
    const mine = await open('a')
    const other = await open('b')
    const anthropic = { ...hello, max_tokens: 9 }
    const google = { contents: [{ parts: [{ text: 'hello' }] }] }
    const statuses = [
      await send('/v1/chat/completions', hello, bearer(mine.token)),
      await send('/v1/messages', anthropic, { 'x-api-key': mine.token }),
      await send('/v1beta/models/m:generateContent', google, { 'x-goog-api-key': mine.token }),
    ].map(({ status }) => status)
    expect(statuses).toEqual([200, 200, 200])
    const stolen = await send(
      `/attempts/${other.id}/v1/chat/completions`,
      hello,
      bearer(mine.token),
    )
    expect(stolen.status).toBe(403)
    expect(stolen.body).toMatchObject({ error: { type: 'permission_error' } })
    await send(`/attempts/${mine.id}/close`, {})
    const late = await send('/v1/chat/completions', hello, bearer(mine.token))
    expect(late).toMatchObject({ status: 410, body: { error: { code: 'attempt_is_over' } } })
  })

  it('has a secret each for the model, for control and for reading', async () => {
    const { send, url } = await openSaying(['hi', 'hi'], { secrets })
    const opens = async (secret: string) =>
      (await send('/attempts', { task: 'a' }, bearer(secret))).status
    expect(await opens('c-secret')).toBe(201)
    expect(await opens('m-secret')).toBe(401)
    expect(await opens('r-secret')).toBe(401)
    const reads = async (secret: string) =>
      (await fetch(`${url}/attempts`, { headers: bearer(secret) })).status
    expect([await reads('c-secret'), await reads('r-secret'), await reads('m-secret')]).toEqual([
      200, 200, 401,
    ])
    const asks = async (secret: string) =>
      (await send('/attempts/x/v1/chat/completions', hello, bearer(secret))).status
    expect([await asks('m-secret'), await asks('c-secret'), await asks('r-secret')]).toEqual([
      200, 401, 401,
    ])
    const listed = await (await fetch(`${url}/attempts`, { headers: bearer('r-secret') })).text()
    expect(listed).not.toContain('esp-')
  })

  it('tells what is wrong in the shape of each dialect', async () => {
    const { send } = await openSaying([], { secrets })
    const shapes = [
      await send('/v1/chat/completions', hello),
      await send('/v1/responses', { input: 'x' }),
      await send('/v1/messages', hello),
      await send('/v1beta/models/m:generateContent', {}),
    ]
    expect(shapes.map(({ status }) => status)).toEqual([401, 401, 401, 401])
    expect(shapes[0]!.body).toMatchObject({ error: { type: 'authentication_error' } })
    expect(shapes[1]!.body).toMatchObject({ error: { code: 'invalid_api_key' } })
    expect(shapes[2]!.body).toMatchObject({
      type: 'error',
      error: { type: 'authentication_error' },
    })
    expect(shapes[3]!.body).toMatchObject({ error: { code: 401, status: 'UNAUTHENTICATED' } })
  })

  it('refuses other hosts, other pages, large bodies, and listening openly without a token', async () => {
    const { url, send } = await openSaying([], { bodyBytes: 1000 })
    const statusOf = async (headers: Record<string, string>) => {
      const asked = httpRequest(`${url}/attempts`, { headers }).end()
      const [answer] = (await once(asked, 'response')) as [{ statusCode: number; resume(): void }]
      answer.resume()
      return answer.statusCode
    }
    expect(await statusOf({ host: 'evil.example' })).toBe(400)
    expect(await statusOf({ origin: 'http://evil.example' })).toBe(403)
    const large = { ...hello, max_tokens: 5, user: 'x'.repeat(2000) }
    expect(await send('/v1/messages', large)).toMatchObject({
      status: 413,
      body: { error: { type: 'request_too_large' } },
    })
    await expect(openSaying([], { host: '0.0.0.0' })).rejects.toThrow(/needs a token/)
  })
})

describe('ends of attempts', () => {
  const reward = { short: ({ answer }: { answer: string }) => (answer.length < 4 ? 1 : 0) }

  it('takes posted rewards, else asks the reward functions, and compares by task', async () => {
    const { open, send, groups } = await openSaying(['yes', 'longer', 'no', 'no'], {
      parts: { group: 2, reward },
    })
    for (const given of [{}, { reward: 5 }]) {
      const { id, token } = await open('t')
      await send('/v1/chat/completions', hello, bearer(token))
      await send(`/attempts/${id}/close`, given)
    }
    expect(groups).toHaveLength(1)
    expect(groups[0]!.members.map(member => member.reward.total)).toEqual([1, 5])
    expect(groups[0]!.members.map(member => Math.sign(member.advantage!))).toEqual([-1, 1])
    const third = await open('t')
    await send('/v1/chat/completions', hello, bearer(third.token))
    expect(await send(`/attempts/${third.id}/reward`, { reward: 3 })).toMatchObject({
      body: { posted: 3 },
    })
    await send(`/attempts/${third.id}/close`, {})
    expect(groups).toHaveLength(1)
    expect(await send('/groups/t/close', {})).toMatchObject({ body: { written: true } })
    expect(groups[1]).toMatchObject({ id: 't~2', members: [{ reward: { total: 3 } }] })
  })

  it('goes on with groups of which a gateway that was killed had some attempts', async () => {
    const first = await openSaying(['yes', 'no', 'yes'], { parts: { group: 3, reward } })
    for (const given of [{ reward: 5 }, undefined, {}]) {
      const { id, token } = await first.open('t')
      await first.send('/v1/chat/completions', hello, bearer(token))
      if (given) await first.send(`/attempts/${id}/close`, given)
    }
    const finished = new Set(['u' as GroupId])
    const again = await openSaying(['longer', 'no'], { parts: { group: 3, reward, finished } })
    const taskOf = (id: TaskId) => ({ id, data: {} })
    await again.gateway.attempts.adopt(first.trees, taskOf)
    expect(again.groups).toHaveLength(0)
    for (const task of ['t', 'u']) {
      const { id, token } = await again.open(task)
      await again.send('/v1/chat/completions', hello, bearer(token))
      await again.send(`/attempts/${id}/close`, {})
    }
    await again.send('/groups/u/close', {})
    expect(again.trees.map(({ id }) => id)).toEqual(['t/1', 'u~2/0'])
    const [group, other] = again.groups
    expect(group!.members.map(({ reward: { total } }) => total).toSorted()).toEqual([0, 1, 5])
    expect([group!.id, other!.id]).toEqual(['t', 'u~2'])
  })

  it('closes what is idle, and keeps what failed unscored', async () => {
    const { open, send, gateway, groups } = await openSaying(['ok', 'ok'], {
      parts: { reward },
      idleSeconds: 0,
    })
    const idle = await open('idle')
    await send('/v1/chat/completions', hello, bearer(idle.token))
    await nextTurn()
    gateway.attempts.closeIdle()
    await gateway.attempts.get(idle.id)!.ending
    expect(groups[0]!.members[0]!.reward.total).toBe(1)
    const broken = await open('broken')
    await send('/v1/chat/completions', hello, bearer(broken.token))
    await send(`/attempts/${broken.id}/close`, { failed: 'the sandbox died' })
    expect(groups[1]).toMatchObject({
      members: [],
      unscored: [{ outcome: { kind: 'failed', message: 'the sandbox died' } }],
    })
  })

  it('finishes or truthfully cuts what runs when it is stopped', async () => {
    const { open, send, gateway, groups, trees } = await openCounting(
      () => Number.POSITIVE_INFINITY,
    )
    const { id, token } = await open('cut')
    const answer = send('/v1/chat/completions', hello, bearer(token))
    while (gateway.attempts.get(id)!.running === 0) await nextTurn()
    await gateway.attempts.drain(0)
    expect((await send('/attempts', { task: 'late' })).status).toBe(503)
    await gateway[Symbol.asyncDispose]()
    expect((await answer).status).toBe(410)
    expect(groups[0]!.unscored[0]!.outcome).toEqual({ kind: 'aborted', by: 'shutdown' })
    expect(trees[0]!.trajectories[0]!.turns.at(-1)!.finish.kind).toBe('abort')
  })
})

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
