import { setImmediate as nextTurn } from 'node:timers/promises'
import { afterAll, describe, expect, it, vi } from 'vitest'
import { dicePolicy, openByteRenderer } from '../../../test/rolling.ts'
import type { Call } from '../../base/core/call.ts'
import type { Task } from '../../base/core/environment.ts'
import type { TaskId } from '../../base/core/ids.ts'
import type { Policy, SampleRequest } from '../../base/core/policy.ts'
import { keepSecret } from '../../base/core/process/secrets.ts'
import { calculator } from '../../engine/environments/built-in/calculator.ts'
import { makeEstimate } from '../../engine/weigh/estimate.ts'
import type { RollParts } from '../../run/run/roll-groups.ts'
import { Rollouts } from './rollouts.ts'
import type { RolloutsOptions } from './rollouts-options.ts'
import { serveRollouts } from './rollouts-server.ts'
import { Worlds } from './rollouts-worlds.ts'

const renderer = await openByteRenderer()
const environment = calculator()
const closing: AsyncDisposable[] = []
afterAll(async () => {
  for (const each of closing.reverse()) await each[Symbol.asyncDispose]()
})

/** Lets happen what needs no clock: nothing of these rollouts does. */
async function settle(): Promise<void> {
  for (let turn = 0; turn < 200; turn++) await nextTurn()
}

/** A gate that samples wait at until it is opened. */
function gated(policy: Policy) {
  let open: () => void = () => undefined
  let gate = new Promise<void>(resolve => (open = resolve))
  let started = 0
  return {
    policy: {
      ...policy,
      sampleSeveral: undefined,
      async sample(request: SampleRequest, call: Call) {
        started++
        await gate
        return await policy.sample(request, call)
      },
    } as unknown as Policy,
    get started() {
      return started
    },
    open: () => open(),
    close() {
      gate = new Promise<void>(resolve => (open = resolve))
    },
  }
}

async function openService(more: Partial<RollParts> = {}, options: Partial<RolloutsOptions> = {}) {
  const parts: RollParts = {
    environment,
    policy: dicePolicy(renderer),
    renderer,
    estimate: makeEstimate('grpo'),
    group: 2,
    limits: { turns: 3 },
    concurrency: 8,
    ...more,
  }
  const rollouts = new Rollouts({
    parts,
    openPolicy: async uri => {
      if (uri.startsWith('sglang:')) return dicePolicy(renderer)
      throw new Error(`no endpoint ${uri}`)
    },
    findTask: async (id): Promise<Task | undefined> =>
      id === 'known' ? { id: 'known' as TaskId, data: environment.readTask(task(1)) } : undefined,
    ...options,
  })
  const worlds = new Worlds({ environment, reward: environment.reward, most: 2 })
  const server = await serveRollouts({ rollouts, worlds }, { port: 0, token: 'secret' })
  closing.push(rollouts, worlds, server)
  return { rollouts, worlds, ask: asking(server.url), url: server.url }
}

const task = (number: number) => ({ prompt: `${number} + 1`, answer: String(number + 1) })

function asking(url: string) {
  return async (path: string, body?: object, method = body ? 'POST' : 'GET') => {
    const response = await fetch(`${url}${path}`, {
      method,
      headers: {
        authorization: 'Bearer secret',
        ...(body && { 'content-type': 'application/json' }),
      },
      ...(body && { body: JSON.stringify(body) }),
    })
    const text = await response.text()
    const value = response.headers.get('content-type')?.includes('json') ? JSON.parse(text) : text
    return { code: response.status, value, headers: response.headers }
  }
}

describe('rollouts over HTTP', () => {
  it('rolls what is submitted and gives rows in the format that was asked for', async () => {
    const { ask } = await openService()
    const body = {
      id: 'one',
      tasks: [task(1), task(2), 'known'],
      format: 'trl',
      step: 4,
      version: 7,
    }
    const submitted = await ask('/v1/rollouts', body)
    expect([submitted.code, submitted.value.groups]).toEqual([202, 3])
    const groups = []
    let cursor = 0
    let state = 'running'
    while (state === 'running' || groups.length < 3) {
      const { value } = await ask(`/v1/rollouts/one/groups?after=${cursor}&wait=10`)
      groups.push(...value.groups)
      ;({ cursor, state } = value)
    }
    expect(groups.map(({ index }) => index).sort()).toEqual([0, 1, 2])
    expect(groups.find(({ index }) => index === 2).task).toBe('known')
    for (const group of groups) {
      expect(group.step).toBe(4)
      expect(group.rewards).toHaveLength(2)
      expect(group.rows).toHaveLength(2)
      for (const row of group.rows) {
        expect(row.completion_ids).toHaveLength(row.env_mask.length)
        expect(row.logprobs).toHaveLength(row.env_mask.length)
        expect(row.model_version).toBe(7)
      }
    }
    await ask(`/v1/rollouts/one/groups?after=${cursor}`)
    expect((await ask('/v1/rollouts/one')).value).toMatchObject({ state: 'finished', taken: 3 })
  })

  it('rolls a submission once, however often it is sent', async () => {
    const { ask, rollouts } = await openService()
    const body = { id: 'twice', tasks: [task(3)] }
    await Promise.all([ask('/v1/rollouts', body), ask('/v1/rollouts', body)])
    await ask('/v1/rollouts/twice/groups?wait=10')
    expect((await ask('/v1/rollouts', body)).value).toMatchObject({ state: 'finished' })
    expect(rollouts.counts.submissions).toBe(1)
    const other = await ask('/v1/rollouts', { ...body, tasks: [task(4)] })
    expect(other.code).toBe(409)
    expect(other.value.error).toContain('"twice" was submitted before with other content')
  })

  it('O1: says why attempts of a group failed, to the client and to the operator', async () => {
    const broken = {
      ...dicePolicy(renderer),
      sampleSeveral: undefined,
      sample: async () => {
        throw new Error('GPU 7 fell off the bus')
      },
    } as unknown as Policy
    const lines: string[] = []
    const { ask } = await openService({ policy: broken }, { tell: line => lines.push(line) })
    await ask('/v1/rollouts', { id: 'broken', tasks: [task(1)] })
    const { value } = await ask('/v1/rollouts/broken/groups?wait=10')
    expect(value.groups[0]).toMatchObject({ failed: 2, rewards: [] })
    expect(value.groups[0].failures).toEqual([
      { where: 'failed in policy', message: 'GPU N fell off the bus', count: 2 },
    ])
    expect(lines).toEqual([
      'an attempt of broken/0 failed in policy: GPU N fell off the bus (told once)',
    ])
  })

  it('gives groups again until they are acknowledged', async () => {
    const { ask, rollouts } = await openService()
    await ask('/v1/rollouts', { id: 'again', tasks: [task(1)] })
    const first = await ask('/v1/rollouts/again/groups?wait=10')
    const second = await ask('/v1/rollouts/again/groups')
    expect(second.value.groups).toEqual(first.value.groups)
    expect(rollouts.counts.waiting).toBe(1)
    const third = await ask('/v1/rollouts/again/groups?after=1')
    expect(third.value.groups).toEqual([])
    expect(rollouts.counts.waiting).toBe(0)
  })

  it('streams groups as events, and goes on after the last one received', async () => {
    const { ask, url } = await openService()
    await ask('/v1/rollouts', { id: 'stream', tasks: [task(1), task(2), task(3)] })
    const headers = { authorization: 'Bearer secret' }
    const whole = await (await fetch(`${url}/v1/rollouts/stream/events`, { headers })).text()
    const events = whole.split('\n\n').filter(event => event.startsWith('id:'))
    expect(events.map(event => event.split('\n')[0])).toEqual(['id: 1', 'id: 2', 'id: 3'])
    expect(whole).toMatch(/event: end\ndata: .*"finished"/)
    const resumed = await fetch(`${url}/v1/rollouts/stream/events`, {
      headers: { ...headers, 'last-event-id': '2' },
    })
    expect((await resumed.text()).match(/^id: \d/gm)).toEqual(['id: 3'])
    expect((await ask('/v1/rollouts/stream/events?after=4')).code).toBe(400)
    const { value } = await ask('/v1/rollouts/stream/acknowledge', { cursor: 3 })
    expect(value.taken).toBe(3)
  })

  it('H4: sends no secret on, neither to who polls nor as events', async () => {
    keepSecret('swordfish-swordfish')
    const { ask, url } = await openService()
    const prompt = 'Say swordfish-swordfish.'
    await ask('/v1/rollouts', { id: 'quiet', tasks: [{ prompt, answer: '1' }] })
    const polled = await ask('/v1/rollouts/quiet/groups?wait=10')
    const headers = { authorization: 'Bearer secret' }
    const events = await (await fetch(`${url}/v1/rollouts/quiet/events`, { headers })).text()
    for (const text of [JSON.stringify(polled.value), events]) {
      expect(text).toContain('"rewards"')
      expect(text).not.toContain('swordfish')
    }
  })

  it('refuses what its queue has no room for, and takes it when there is', async () => {
    const gate = gated(dicePolicy(renderer))
    const { ask } = await openService({ policy: gate.policy, concurrency: 2 }, { queue: 2 })
    expect((await ask('/v1/rollouts', { id: 'a', tasks: [task(1), task(2)] })).code).toBe(202)
    const full = await ask('/v1/rollouts', { id: 'b', tasks: [task(1), task(2)] })
    expect([full.code, full.headers.get('retry-after')]).toEqual([429, '1'])
    expect(full.value.error).toBe('1 of 2 groups are queued: there is no room for 2 more')
    const never = await ask('/v1/rollouts', { id: 'c', tasks: [task(1), task(2), task(3)] })
    expect(never.code).toBe(400)
    expect(never.value.error).toMatch(/^3 groups are more than .* \(2\): send them in parts$/)
    gate.open()
    await ask('/v1/rollouts/a/groups?wait=10')
    await ask('/v1/rollouts/a/groups?after=1&wait=10')
    expect((await ask('/v1/rollouts', { id: 'b', tasks: [task(1), task(2)] })).code).toBe(202)
  })

  it('rolls no further than there is room for results', async () => {
    const { ask, rollouts } = await openService({ concurrency: 2 }, { results: 2 })
    await ask('/v1/rollouts', { id: 'many', tasks: Array.from({ length: 6 }, (_, n) => task(n)) })
    await ask('/v1/rollouts/many/groups?wait=10')
    await vi.waitFor(() => expect(rollouts.counts.finished).toBe(2), 30_000)
    await settle()
    expect(rollouts.counts.finished).toBe(2)
    let cursor = 0
    for (let taken = 0; taken < 6; ) {
      const { value } = await ask(`/v1/rollouts/many/groups?after=${cursor}&wait=10`)
      taken += value.groups.length
      ;({ cursor } = value)
    }
    expect(rollouts.counts.finished).toBe(6)
  })

  it('cancels: what is finished stays, the rest is not rolled', async () => {
    const gate = gated(dicePolicy(renderer))
    const { ask, rollouts } = await openService({ policy: gate.policy, concurrency: 2 })
    await ask('/v1/rollouts', { id: 'gone', tasks: [task(1), task(2), task(3)] })
    const waiting = ask('/v1/rollouts/gone/groups?wait=10')
    expect((await ask('/v1/rollouts/gone', undefined, 'DELETE')).value.state).toBe('cancelled')
    expect((await waiting).value).toMatchObject({ groups: [], state: 'cancelled' })
    gate.open()
    expect(rollouts.counts.queued).toBe(0)
  })

  it('pauses samples, and lets them go on under the weights that were announced', async () => {
    const gate = gated(dicePolicy(renderer))
    const { ask } = await openService({ policy: gate.policy })
    const paused = { paused: true, seconds: 600 }
    expect((await ask('/v1/pause', {})).value).toEqual({ ...paused, version: null })
    await ask('/v1/rollouts', { id: 'later', tasks: [task(1)], format: 'trl' })
    await settle()
    expect(gate.started).toBe(0)
    expect((await ask('/v1/weights', { version: 12 })).value).toEqual({ ...paused, version: 12 })
    expect((await ask('/v1/resume', {})).value.paused).toBe(false)
    gate.open()
    const { value } = await ask('/v1/rollouts/later/groups?wait=10')
    expect(value.groups[0].rows[0].model_version).toBe(12)
  })

  it('opens worlds for trainers that roll by themselves, and scores them', async () => {
    const { ask } = await openService()
    const { code, value: world } = await ask('/v1/worlds', {
      task: { prompt: '6 * 7', answer: 42 },
    })
    expect(code).toBe(201)
    expect(world.messages.at(-1)).toMatchObject({ role: 'user' })
    expect(world.tools[0].function.name).toBe('calculate')
    const path = `/v1/worlds/${world.id}`
    const called = await ask(`${path}/calls`, {
      name: 'calculate',
      arguments: { expression: '6*7' },
    })
    expect(called.value).toEqual({ content: '42', isOver: false })
    const wrong = await ask(`${path}/calls`, { name: 'divide', arguments: {} })
    expect(wrong.value.content).toMatch(/divide/)
    expect((await ask(`${path}/close`, { answer: '42' })).value.reward).toBe(1)
    expect((await ask(`${path}/calls`, { name: 'calculate' })).code).toBe(404)
    await ask('/v1/worlds', { task: 'known' })
    await ask('/v1/worlds', { task: 'known' })
    expect((await ask('/v1/worlds', { task: 'known' })).code).toBe(429)
  })

  it.each([
    ['/v1/rollouts', { tasks: [] }, 400, /id: .*; tasks: /],
    ['/v1/pause', { seconds: 3601 }, 400, /seconds: /],
    ['/v1/resume', { trainer: 'a b' }, 400, /trainer: /],
    ['/v1/rollouts', { id: 'x', tasks: [{}], polcy: 'x' }, 400, /Unrecognized key: "polcy"/],
    ['/v1/rollouts', { id: 'x', tasks: ['unknown'] }, 400, /tasks\[0\]: no task with id "unknown"/],
    ['/v1/rollouts', { id: 'x', tasks: [{ prompt: 3 }] }, 400, /tasks\[0\]: /],
    ['/v1/rollouts', { id: 'x', tasks: [task(1)], format: 'x' }, 400, /No format called "x"/],
    ['/v1/rollouts', { id: 'x', tasks: [task(1)], format: 'tau2-bench' }, 400, /format of lines/],
    ['/v1/rollouts', { id: 'x', tasks: [task(1)], policy: 'y' }, 400, /policy: no endpoint y/],
    [
      '/v1/rollouts',
      { id: 'x', tasks: [{ ...task(1), id: { a: 1 } }] },
      400,
      /tasks\[0\]: the id /,
    ],
    ['/v1/rollouts', { id: 'x', tasks: [{ ...task(1), id: '' }] }, 400, /tasks\[0\]: the id "" /],
    ['/v1/rollouts/x/groups?after=1.5', undefined, 400, /after should be the cursor of a group/],
    ['/v1/rollouts/nobody', undefined, 404, /no submission called "nobody"/],
    ['/v1/nothing', undefined, 404, /see \/openapi.json/],
  ] as const)('answers %s %j with %i and words', async (path, body, code, words) => {
    const { ask } = await openService()
    const answer = await ask(path, body as object | undefined)
    expect(answer.code).toBe(code)
    expect(answer.value.error).toMatch(words)
  })

  it('lets nobody in without the token, except to ask whether it is up', async () => {
    const { url } = await openService()
    const refused = await fetch(`${url}/v1/rollouts/x`, { headers: { authorization: 'Bearer no' } })
    expect(refused.status).toBe(401)
    expect((await fetch(`${url}/metrics`)).status).toBe(401)
    expect(await (await fetch(`${url}/health`)).json()).toEqual({ status: 'ok' })
  })

  it('listens beyond this machine only with a token', async () => {
    const { rollouts, worlds } = await openService()
    await expect(serveRollouts({ rollouts, worlds }, { host: '0.0.0.0', port: 0 })).rejects.toThrow(
      /needs a token/,
    )
  })

  it('describes itself, and counts', async () => {
    const { ask } = await openService()
    await ask('/v1/rollouts', { id: 'm', tasks: [task(1)] })
    await ask('/v1/rollouts/m/groups?wait=10')
    const { value: document } = await ask('/openapi.json')
    expect(document.openapi).toBe('3.1.0')
    expect(Object.keys(document.paths)).toContain('/v1/rollouts/{id}/groups')
    const schema =
      document.paths['/v1/rollouts'].post.requestBody.content['application/json'].schema
    expect(schema.required).toEqual(['id', 'tasks'])
    const { value: metrics } = await ask('/metrics')
    expect(metrics).toContain('espalier_rollouts_finished_total 1\n')
    expect(metrics).toMatch(/espalier_rollouts_sampled_tokens_total [1-9]/)
    expect(metrics).toContain('espalier_rollouts_paused 0\n')
  })
})

describe('H7: a service is bounded', () => {
  const takeAll = async (rollouts: Rollouts, id: string): Promise<void> => {
    let cursor = 0
    for (;;) {
      const taken = await rollouts.take(id, { after: cursor, wait: 10 })
      cursor = taken.cursor
      if (taken.groups.length === 0 && taken.state !== 'running') return
    }
  }

  it('forgets submissions that were taken, and still rolls none of them again', async () => {
    const { rollouts, ask } = await openService()
    const body = { id: 'gone', tasks: [task(1)] }
    await ask('/v1/rollouts', body)
    await takeAll(rollouts, 'gone')
    expect(rollouts.counts.kept).toBe(0)
    const again = await ask('/v1/rollouts', body)
    expect(again.value).toMatchObject({ id: 'gone', state: 'finished', taken: 1 })
    expect((await ask('/v1/rollouts', { ...body, group: 3 })).code).toBe(409)
    expect((await ask('/v1/rollouts/gone/groups?after=1')).value.state).toBe('finished')
  })

  it('closes endpoints that nobody samples from any more', async () => {
    let closed = 0
    const openPolicy = async (): Promise<Policy> => ({
      ...dicePolicy(renderer),
      [Symbol.asyncDispose]: async () => void closed++,
    })
    const { rollouts, ask } = await openService({}, { openPolicy, idleSeconds: 0 })
    await ask('/v1/rollouts', { id: 'one', tasks: [task(1)], policy: 'sglang:http://a' })
    await takeAll(rollouts, 'one')
    await vi.waitFor(() => expect([closed, rollouts.counts.policies]).toEqual([1, 0]))
  })

  it('counts worlds before they are open', async () => {
    const { worlds, rollouts } = await openService()
    const open = async () => await worlds.open(await rollouts.task(task(1)))
    const tries = await Promise.allSettled(Array.from({ length: 10 }, open))
    expect(tries.filter(each => each.status === 'fulfilled')).toHaveLength(2)
  })

  it('answers repeated keys and deep JSON with 400', async () => {
    const { ask, url } = await openService()
    await ask('/v1/rollouts', { id: 'keys', tasks: [task(1)] })
    expect((await ask('/v1/rollouts/keys/groups?after=0&after=1')).code).toBe(400)
    const deep = `{"id":"deep","tasks":[{"prompt":"1","answer":${'['.repeat(9000)}${']'.repeat(9000)}}]}`
    const headers = { authorization: 'Bearer secret', 'content-type': 'application/json' }
    const answer = await fetch(`${url}/v1/rollouts`, { method: 'POST', headers, body: deep })
    expect(answer.status).toBe(400)
  })
})
