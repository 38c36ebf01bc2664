import { afterAll, describe, expect, it, vi } from 'vitest'
import { z } from 'zod'
import { Counter } from '../../../test/counter.ts'
import { countingEnvironment, openCountingService } from '../../../test/counting-service.ts'
import type { Environment } from '../../base/core/environment.ts'
import type { TaskId } from '../../base/core/ids.ts'
import { agent } from '../../engine/capture/agent.ts'
import { Worlds, type WorldsOptions } from './rollouts-worlds.ts'

const closing: AsyncDisposable[] = []
afterAll(async () => {
  for (const each of closing.reverse()) await each[Symbol.asyncDispose]()
})

/** Where calls wait until it is opened. */
function openGate() {
  let open: () => void = () => undefined
  const wait = new Promise<void>(resolve => (open = resolve))
  const entered = new Counter()
  const pass = (): Promise<void> => {
    entered.raise()
    return wait
  }
  return { pass, open, entered }
}

type Gate = ReturnType<typeof openGate>

async function openService(gate?: Gate, options: Partial<WorldsOptions> = {}) {
  const server = await openCountingService({ ...options, ...(gate && { onCall: gate.pass }) })
  closing.push(server)
  return async (path: string, body: object, key?: string) => {
    const answer = await fetch(`${server.url}/v1/worlds${path}`, {
      method: 'POST',
      headers: { 'content-type': 'application/json', ...(key && { 'idempotency-key': key }) },
      body: JSON.stringify(body),
    })
    const value = (await answer.json()) as Answer
    return { code: answer.status, value }
  }
}

/** The fields of every answer; none has all of them. */
interface Answer {
  readonly id: string
  readonly content: string
  readonly isOver: boolean
  readonly reward: number
  readonly error: string
}

const add = { name: 'add' }

describe('a request to a world that has a name', () => {
  it('is run once: sent again, it gets the same answer', async () => {
    const ask = await openService()
    const { id } = (await ask('', { task: {} })).value
    const first = await ask(`/${id}/calls`, add, 'one')
    expect(first.value).toEqual({ content: '1', isOver: false })
    expect(await ask(`/${id}/calls`, add, 'one')).toEqual(first)
    expect((await ask(`/${id}/calls`, add, 'two')).value.content).toBe('2')
    expect(await ask(`/${id}/calls`, add, 'one')).toEqual(first)
    expect((await ask(`/${id}/close`, {}, 'end')).value.reward).toBe(2)
  })

  it('is run once, although it is sent again while it is being run', async () => {
    const gate = openGate()
    const ask = await openService(gate)
    const { id } = (await ask('', { task: {} })).value
    const first = ask(`/${id}/calls`, add, 'one')
    await gate.entered.reached(1)
    const again = [1, 2].map(() => ask(`/${id}/calls`, add, 'one'))
    gate.open()
    for (const { value } of [await first, ...(await Promise.all(again))]) {
      expect(value.content).toBe('1')
    }
    expect((await ask(`/${id}/close`, {}, 'end')).value.reward).toBe(1)
  })

  it('closes a world once, and gives its reward again', async () => {
    const ask = await openService()
    const { id } = (await ask('', { task: {} })).value
    await ask(`/${id}/calls`, add)
    const both = await Promise.all([1, 2].map(() => ask(`/${id}/close`, { answer: 'x' }, 'end')))
    const later = await ask(`/${id}/close`, { answer: 'x' }, 'end')
    for (const { code, value } of [...both, later]) {
      expect([code, value.reward]).toEqual([200, 1])
    }
    expect((await ask(`/${id}/close`, {}, 'another')).code).toBe(404)
  })

  it('opens one world, also where a second would be too many; a refused one may be sent again', async () => {
    const ask = await openService(undefined, { most: 1 })
    const { code, value: first } = await ask('', { task: {} }, 'mine')
    expect(code).toBe(201)
    expect((await ask('', { task: {} }, 'mine')).value).toEqual(first)
    expect((await ask('', { task: {} }, 'next')).code).toBe(429)
    await ask(`/${first.id}/close`, {}, 'end')
    const next = await ask('', { task: {} }, 'next')
    expect(next.code).toBe(201)
    expect(next.value.id).not.toBe(first.id)
  })

  it('stands for one request: another under its name is refused', async () => {
    const ask = await openService()
    const { id } = (await ask('', { task: {} })).value
    await ask(`/${id}/calls`, add, 'one')
    const other = await ask(`/${id}/calls`, { name: 'add', arguments: { by: 2 } }, 'one')
    expect(other.code).toBe(409)
    expect(other.value.error).toContain('"one" was sent before with another request')
    expect((await ask(`/${id}/calls`, add, 'x'.repeat(101))).code).toBe(400)
  })

  it('is the same request only in its own world', async () => {
    const ask = await openService()
    for (const id of [1, 2].map(async () => (await ask('', { task: {} })).value.id)) {
      expect((await ask(`/${await id}/calls`, add, 'one')).value.content).toBe('1')
      expect((await ask(`/${await id}/close`, {}, 'end')).value.reward).toBe(1)
    }
  })
})

it('requests without a name are run each time', async () => {
  const ask = await openService()
  const { id } = (await ask('', { task: {} })).value
  await ask(`/${id}/calls`, add)
  expect((await ask(`/${id}/calls`, add)).value.content).toBe('2')
  expect((await ask(`/${id}/close`, {})).value.reward).toBe(2)
  expect((await ask(`/${id}/close`, {})).code).toBe(404)
})

it('a world that a call under way ends is scored, although it is closed with an answer', async () => {
  const gate = openGate()
  const environment = countingEnvironment({ onCall: gate.pass })
  await using worlds = new Worlds({ environment, reward: environment.reward })
  const { id } = await worlds.open({ id: 'short' as TaskId, data: { ends: 1 } })
  const call = worlds.call(id, { name: 'add', arguments: {} })
  await gate.entered.reached(1)
  const end = worlds.close(id, 'done')
  gate.open()
  expect((await call).isOver).toBe(true)
  expect((await end).total).toBe(1)
})

describe('H7: a world that nobody uses is closed', () => {
  it('but not while a call is made in it', async () => {
    vi.useFakeTimers()
    try {
      const gate = openGate()
      const environment = countingEnvironment({ onCall: gate.pass })
      const { reward } = environment
      await using worlds = new Worlds({ environment, reward, idleSeconds: 5 })
      const { id } = await worlds.open({ id: 'slow' as TaskId, data: { ends: 9 } })
      const call = worlds.call(id, { name: 'add', arguments: {} })
      await gate.entered.reached(1)
      await vi.advanceTimersByTimeAsync(20_000)
      gate.open()
      expect((await call).content).toBe('1')
      expect((await worlds.close(id, undefined)).total).toBe(1)
    } finally {
      vi.useRealTimers()
    }
  })
})

it('a world that cannot be disposed of is worth what it was', async () => {
  const environment = countingEnvironment({})
  const broken: Environment = {
    ...(environment as Environment),
    async open(task, call) {
      const world = await (environment as Environment).open(task, call)
      return { ...world, [Symbol.asyncDispose]: () => Promise.reject(new Error('it clings')) }
    },
  }
  await using worlds = new Worlds({ environment: broken, reward: broken.reward })
  const task = { id: 'x' as TaskId, data: { ends: 9 } }
  const { id } = await worlds.open(task)
  await worlds.call(id, { name: 'add', arguments: {} })
  expect((await worlds.close(id, undefined)).total).toBe(1)
  await worlds.open(task)
})

it('a world of several seats, which one caller cannot play, is refused', async () => {
  const game = agent({ name: 'game', seats: ['a', 'b'], task: z.object({}), run: () => 1 })
  const environment = game as Environment
  await using worlds = new Worlds({ environment, reward: environment.reward })
  await expect(worlds.open({ id: 'x' as TaskId, data: {} })).rejects.toMatchObject({
    statusCode: 400,
    message: expect.stringContaining('game has the seats a, b'),
  })
})

describe('H7: what is kept for requests that are sent again', () => {
  it('goes with the time in which worlds are closed that nobody uses', async () => {
    const ask = await openService(undefined, { idleSeconds: 0.2 })
    const { id } = (await ask('', { task: {} })).value
    expect((await ask(`/${id}/close`, {}, 'end')).code).toBe(200)
    await vi.waitFor(async () => expect((await ask(`/${id}/close`, {}, 'end')).code).toBe(404))
  })

  it('is the last answers of a world, not all of them', async () => {
    const ask = await openService()
    const { id } = (await ask('', { task: {} })).value
    for (let number = 0; number <= 32; number++) await ask(`/${id}/calls`, add, `n${number}`)
    expect((await ask(`/${id}/calls`, add, 'n1')).value.content).toBe('2')
    expect((await ask(`/${id}/calls`, add, 'n0')).value.content).toBe('34')
  })
})
