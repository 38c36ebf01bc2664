import { once } from 'node:events'
import { request as httpRequest } from 'node:http'
import { setImmediate as nextTurn } from 'node:timers/promises'
import { describe, expect, it } from 'vitest'
import { bearer, hello, openCounting, openSaying } from '../../test/open-gateways.ts'
import type { GroupId, TaskId } from '../core/ids.ts'

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
