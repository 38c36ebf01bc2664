import { once } from 'node:events'
import { request as httpRequest } from 'node:http'
import { setImmediate as nextTurn } from 'node:timers/promises'
import { describe, expect, it } from 'vitest'
import { bearer, hello, openCounting, openSaying } from '../../../test/open-gateways.ts'
import type { GroupId } from '../../base/core/ids.ts'
import type { Tree } from '../../base/core/tree.ts'

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

  it('tells in the shape of its dialect that there is nothing on a path', async () => {
    const { url } = await openSaying([])
    const tell = async (method: string, path: string) => {
      const answer = await fetch(`${url}${path}`, { method })
      return { status: answer.status, body: await answer.json() }
    }
    const words = expect.stringMatching(/^no (POST|DELETE) /)
    expect(await tell('DELETE', '/v1/chat/completions')).toMatchObject({
      status: 404,
      body: { error: { message: words, type: 'not_found_error', code: 'not_found' } },
    })
    expect(await tell('DELETE', '/v1/messages/batches')).toMatchObject({
      body: { type: 'error', error: { type: 'not_found_error', message: words } },
    })
    for (const method of ['POST', 'DELETE']) {
      expect(await tell(method, '/v1beta/models/x:embedContent')).toMatchObject({
        status: 404,
        body: { error: { code: 404, status: 'NOT_FOUND', message: words } },
      })
    }
    expect(await tell('DELETE', '/nowhere')).toMatchObject({ body: { error: words } })
  })

  it('answers a key that nobody knows with 401 and how to get one, with and without secrets', async () => {
    const { send } = await openSaying([])
    const google = { contents: [{ parts: [{ text: 'hello' }] }] }
    const message = expect.stringContaining('Open one with POST /attempts')
    expect(await send('/v1/chat/completions', hello, bearer('sk-unknown'))).toMatchObject({
      status: 401,
      body: { error: { code: 'invalid_api_key', message } },
    })
    const anthropic = await send('/v1/messages', hello, { 'x-api-key': 'unknown' })
    expect(anthropic).toMatchObject({
      status: 401,
      body: { type: 'error', error: { type: 'authentication_error', message } },
    })
    expect(await send('/v1beta/models/m:generateContent', google)).toMatchObject({
      status: 401,
      body: { error: { status: 'UNAUTHENTICATED', message } },
    })
    const guarded = await openSaying([], { secrets })
    const known = await guarded.send('/v1/chat/completions', hello, bearer('m-secret'))
    expect(known).toMatchObject({ status: 400, body: { error: { message } } })
  })

  it('[H4] shows and writes the key of an OpenEnv session nowhere', async () => {
    const { send, url, trees, groups, gateway } = await openSaying(['yes', 'yes'], { secrets })
    const control = bearer('c-secret')
    const keyOf = async (body: object) =>
      (await send('/openenv/sessions', body, control)).body.session_id as string
    const keys = [await keyOf({}), await keyOf({ session_id: 'a-key-of-its-own' })]
    expect((await send('/openenv/sessions', { session_id: keys[1] }, control)).status).toBe(409)
    for (const key of keys) {
      expect((await send('/openenv/v1/chat/completions', hello, bearer(key))).status).toBe(200)
    }
    const read = async (path: string) =>
      await (await fetch(`${url}${path}`, { headers: bearer('r-secret') })).text()
    const shown = [await read('/attempts'), await read('/openenv/sessions'), await read('/groups')]
    const [first] = JSON.parse(shown[1]!).sessions as { session_id: string }[]
    const listed = await read(`/openenv/sessions/${first!.session_id}/rollout`)
    expect(JSON.parse(listed).turns).toHaveLength(1)
    for (const key of keys) {
      expect(JSON.parse(await read(`/openenv/sessions/${key}`))).toMatchObject({
        session_id: key,
        n_turns: 1,
      })
      const ended = await fetch(`${url}/openenv/sessions/${key}`, {
        method: 'DELETE',
        headers: control,
      })
      expect(await ended.json()).toEqual({ deleted: true })
    }
    expect(gateway.attempts.list()).toEqual([])
    const kept = JSON.stringify([trees, groups])
    expect(keys.filter(key => [...shown, listed, kept].some(text => text.includes(key)))).toEqual(
      [],
    )
  })

  it('opens no control route with the token of an attempt, even without secrets', async () => {
    const { send, open, url } = await openSaying(['yes'])
    const { id, token } = await open('t')
    const asked = [
      await send(`/attempts/${id}/reward`, { reward: 1e9 }, bearer(token)),
      await send(`/attempts/${id}/close`, { reward: 1e9 }, bearer(token)),
      await send('/attempts', { task: 't' }, { 'x-api-key': token }),
      await send('/rllm/sessions', {}, bearer(token)),
      await send('/openenv/sessions', {}, bearer(token)),
    ]
    expect(asked.map(({ status }) => status)).toEqual([403, 403, 403, 403, 403])
    expect((await fetch(`${url}/attempts`, { headers: bearer(token) })).status).toBe(403)
    await send('/v1/chat/completions', hello, bearer(token))
    expect((await send(`/attempts/${id}/close`, { reward: 1 })).status).toBe(200)
  })

  it('refuses strangers from the head on every route, before a byte of their body is taken', async () => {
    const { url } = await openSaying([], { secrets: { control: 'c-secret', model: 'm-secret' } })
    const paths = ['/v1/chat/completions', '/attempts/a/v1/messages', '/rllm/v1/responses']
    for (const path of [
      ...paths,
      '/openenv/v1/models/m:generateContent',
      '/attempts',
      '/rllm/sessions',
    ]) {
      const headers = { 'content-type': 'application/json', 'content-length': '60000000' }
      const asked = httpRequest(`${url}${path}`, { method: 'POST', headers })
      // The body never comes: whoever waits for it does not answer.
      asked.flushHeaders()
      const [answer] = (await once(asked, 'response')) as [{ statusCode: number; resume(): void }]
      expect([path, answer.statusCode]).toEqual([path, 401])
      asked.destroy()
    }
  })

  it('refuses other hosts, other pages, large bodies, and listening openly without a token', async () => {
    const { url, send, open } = await openSaying([], { bodyBytes: 1000 })
    const { token } = await open('t')
    const statusOf = async (headers: Record<string, string>) => {
      const asked = httpRequest(`${url}/attempts`, { headers }).end()
      const [answer] = (await once(asked, 'response')) as [{ statusCode: number; resume(): void }]
      answer.resume()
      return answer.statusCode
    }
    expect(await statusOf({ host: 'evil.example' })).toBe(400)
    expect(await statusOf({ origin: 'http://evil.example' })).toBe(403)
    const large = { ...hello, max_tokens: 5, user: 'x'.repeat(2000) }
    expect(await send('/v1/messages', large, bearer(token))).toMatchObject({
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
    const taskOf = ({ task }: Tree) => ({ id: task, data: {} })
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

  it('fills every group that a gateway that was killed had begun, the oldest first', async () => {
    const first = await openSaying(['a', 'b', 'c', 'd'], { parts: { group: 2, reward } })
    const opened = [await first.open('t'), await first.open('t'), await first.open('t')]
    for (const { id, token } of [opened[0]!, opened[2]!]) {
      await first.send('/v1/chat/completions', hello, bearer(token))
      await first.send(`/attempts/${id}/close`, { reward: 1 })
    }
    const again = await openSaying(['e', 'f'], { parts: { group: 2, reward } })
    await again.gateway.attempts.adopt(first.trees, ({ task }) => ({ id: task, data: {} }))
    expect((await again.send('/groups')).body.open).toMatchObject([{ id: 't' }, { id: 't~2' }])
    for (const given of [{ reward: 2 }, { reward: 3 }]) {
      const { id, token } = await again.open('t')
      await again.send('/v1/chat/completions', hello, bearer(token))
      await again.send(`/attempts/${id}/close`, given)
    }
    const written = again.groups.map(({ id, members }) => [id, members.length])
    expect(written).toEqual([
      ['t', 2],
      ['t~2', 2],
    ])
  })

  it('[D1] gives every group an id of its own, also where a task is called what a later group would be', async () => {
    const { open, send, groups } = await openSaying(['a', 'b', 'c', 'd'], {
      parts: { reward, finished: new Set(['v' as GroupId, 'v~2' as GroupId]) },
    })
    for (const task of ['t~2', 't~2', 't', 't', 'v']) {
      const { id, token } = await open(task)
      await send('/v1/chat/completions', hello, bearer(token))
      await send(`/attempts/${id}/close`, { reward: 1 })
    }
    expect(groups.map(({ id }) => id)).toEqual(['t~2', 't~2~2', 't', 't~3', 'v~3'])
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

  it('[D1] takes one end of an attempt, and refuses another instead of dropping it', async () => {
    const { open, send, gateway } = await openSaying(Array(3).fill('ok'), { idleSeconds: 0 })
    const asked = async (task: string) => {
      const { id, token } = await open(task)
      await send('/v1/chat/completions', hello, bearer(token))
      return async (body: object) => (await send(`/attempts/${id}/close`, body)).status
    }
    const rewarded = await asked('rewarded')
    expect(await rewarded({ reward: 1, failed: 'it broke' })).toBe(400)
    const ending = { reward: 1, report: { left: 3 } }
    expect([await rewarded(ending), await rewarded(ending), await rewarded({})]).toEqual([
      200, 200, 200,
    ])
    const others = [{ reward: 2 }, { report: { left: 4 } }, { failed: 'it broke' }]
    for (const other of others) expect(await rewarded(other)).toBe(410)
    const failed = await asked('failed')
    expect([await failed({ failed: 'it broke' }), await failed({ failed: 'it broke' })]).toEqual([
      200, 200,
    ])
    expect([await failed({ reward: 1 }), await failed({ failed: 'otherwise' })]).toEqual([410, 410])
    const idle = await asked('idle')
    await nextTurn()
    gateway.attempts.closeIdle()
    expect([await idle({ reward: 1 }), await idle({})]).toEqual([410, 200])
  })

  it('[O1] scores no attempt without a sample, says so to whoever rewards it, and goes on', async () => {
    const { open, send, groups } = await openSaying(['ok'], { parts: { group: 3, reward } })
    const silent = await open('t')
    expect(await send(`/attempts/${silent.id}/close`, { reward: 1 })).toMatchObject({
      status: 410,
      body: { error: expect.stringContaining('nothing was sampled in it') },
    })
    const left = await open('t')
    expect((await send(`/attempts/${left.id}/close`, {})).status).toBe(200)
    const { id, token } = await open('t')
    await send('/v1/chat/completions', hello, bearer(token))
    await send(`/attempts/${id}/close`, { reward: 2 })
    expect(groups[0]!.members.map(member => member.reward.total)).toEqual([2])
    expect(groups[0]!.unscored.map(({ outcome }) => outcome)).toMatchObject([
      { kind: 'failed', message: expect.stringContaining('its reward 1 does not count') },
      { kind: 'failed', message: expect.stringContaining('did its agent ask this gateway?') },
    ])
  })

  it('[O1] scores no attempt whose last request failed, unless its agent says what it was worth', async () => {
    const more = { ...hello, messages: [...hello.messages, { role: 'user', content: 'more' }] }
    const written: unknown[] = []
    for (const given of [{}, { reward: 2 }]) {
      const { open, send, groups } = await openSaying(['ok'], { parts: { reward } })
      const { id, token } = await open('t')
      expect((await send('/v1/chat/completions', hello, bearer(token))).status).toBe(200)
      expect((await send('/v1/chat/completions', more, bearer(token))).status).toBe(503)
      await send(`/attempts/${id}/close`, given)
      written.push(...groups)
    }
    expect(written).toMatchObject([
      { members: [], unscored: [{ outcome: { boundary: 'policy' } }] },
      { members: [{ reward: { total: 2 } }], unscored: [] },
    ])
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
