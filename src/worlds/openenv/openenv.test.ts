import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { afterEach, describe, expect, it } from 'vitest'
import {
  cardOf,
  type OnSocket,
  type Recording,
  replayOpenEnv,
  startOpenEnv,
  type TestServer,
} from '../../../test/openenv-server.ts'
import { playOpenEnv } from '../../../test/python/openenv/play.ts'
import type { Environment, World } from '../../base/core/environment.ts'
import type { TaskId } from '../../base/core/ids.ts'
import { makeLanes } from '../../base/core/lane.ts'
import { openEnvironment } from '../../engine/environments/registry.ts'
import { replyOf } from '../../engine/environments/reply.ts'
import { type OpenEnvOptions, openEnvFactory, openOpenEnv } from './openenv.ts'
import type { TextSocket } from './sockets/text-socket.ts'

const { signal } = new AbortController()
const lanes = makeLanes({ policy: 4, tools: 4, environment: 4, reward: 4 })
const closing: AsyncDisposable[] = []
afterEach(async () => {
  for (const each of closing.splice(0)) await each[Symbol.asyncDispose]()
})

async function kept<T extends AsyncDisposable>(opening: Promise<T>): Promise<T> {
  const opened = await opening
  closing.push(opened)
  return opened
}

function recordingOf(name: string): Recording {
  return JSON.parse(readFileSync(`test/fixtures/openenv/${name}.json`, 'utf8')) as Recording
}

const openTask = (environment: Environment, id = 'a'): Promise<World> =>
  environment.open(
    { id: id as TaskId, data: environment.readTask({ reset: { seed: 14 } }) },
    { seed: 1, lanes, signal },
  )

const guess = (number: unknown) => replyOf('', { tool: 'act', input: { guess: number } })
const step = (world: World, reply = guess(1)) =>
  world.step(reply, { signal, messages: world.opening, turn: 0 })

const observation = (hint: string, rest: object = { reward: null, done: false }): string =>
  JSON.stringify({ type: 'observation', data: { observation: { hint }, ...rest } })

/** A server whose resets are answered well, and whose steps are answered by `answer`. */
function hostile(answer: (socket: TextSocket, text: string) => void): OnSocket {
  return socket =>
    socket.listen({
      text(text) {
        const { type } = JSON.parse(text) as { type: string }
        if (type === 'reset') socket.send(observation('begin'))
        else if (type === 'close') socket.close()
        else answer(socket, text)
      },
      ended() {},
    })
}

async function opened(server: TestServer, options: Partial<OpenEnvOptions> = {}) {
  const environment = await openOpenEnv({ url: server.url, seconds: 5, ...options })
  return await kept(openTask(environment))
}

describe('an OpenEnv server as its package answers', () => {
  it('is played by one tool with the fields of its actions, and rewards its own steps', async () => {
    const { url } = await kept(replayOpenEnv(recordingOf('guess')))
    const environment = await openOpenEnv({ url })
    const play = await playOpenEnv(environment, { signal })
    expect(play.opening).toEqual([
      { role: 'system', content: 'Find the number from 1 to 8.' },
      { role: 'user', content: 'guess' },
    ])
    const said = play.messages.filter(({ role }) => role === 'tool').map(({ content }) => content)
    expect(said[0]).toMatch(/invalid arguments for act: guess: must be integer/)
    expect(said.slice(1)).toEqual([...Array(said.length - 2).fill('lower'), 'right'])
    expect(play.report).toMatchObject({ done: true, rewarded: said.length - 1 })
    expect(play.transitions.at(-1)).toMatchObject({ kind: 'end', reward: 1 })
    expect(environment.splits).toEqual(['train', 'test'])
    const tasks = environment.makeTasks!({ count: 9, seed: 1, split: 'test' })
    expect(tasks.map(({ id }) => id).toSorted()).toEqual([0, 1, 2, 3, 4].map(at => `test-${at}`))
    expect(tasks[0]!.data.reset).toMatchObject({ split: 'test' })
  })

  it.each(['shelf', 'shelf-mcp'])('offers the tools of a tool world: %s', async name => {
    const { url } = await kept(replayOpenEnv(recordingOf(name)))
    const isMcp = name === 'shelf-mcp'
    const environment = await openOpenEnv({ url, mode: isMcp ? 'mcp' : 'simulation' })
    const play = await playOpenEnv(environment, { signal })
    expect(play.tools.map(tool => tool.function.name)).toEqual(['count', 'sell'])
    expect(play.calls.map(({ output }) => output)).toEqual([
      '3',
      expect.stringContaining('only 3 left'),
      '1 left',
      '0 left',
    ])
    expect(play.calls[1]!.problem).toBe('thrown')
    expect(Object.keys(environment.reward)).toEqual(isMcp ? [] : ['return'])
    if (!isMcp) expect(play.report).toEqual({ return: 1, rewarded: 4, done: true })
  })
})

describe('a full OpenEnv server', () => {
  /** A server with so many sessions. */
  const withRoom = (most: number): { onSocket: OnSocket; seen: { most: number } } => {
    let active = 0
    const seen = { most: 0 }
    return {
      seen,
      onSocket: socket => {
        if (active >= most) {
          const data = { code: 'CAPACITY_REACHED', message: 'full', active_sessions: active }
          socket.listen({ text() {}, ended() {} })
          socket.send(JSON.stringify({ type: 'error', data: { ...data, max_sessions: most } }))
          return socket.close()
        }
        seen.most = Math.max(seen.most, ++active)
        socket.listen({
          text: text =>
            text.includes('"close"') ? socket.close() : socket.send(observation('begin')),
          ended: () => active--,
        })
      },
    }
  }

  it('is waited for in line, and no attempt fails for it', async () => {
    const { onSocket, seen } = withRoom(2)
    const server = await kept(startOpenEnv(cardOf(), onSocket))
    const told: string[] = []
    const environment = await openOpenEnv({ url: server.url, warn: text => told.push(text) })
    const order: string[] = []
    const attempt = async (id: string): Promise<void> => {
      await using world = await openTask(environment, id)
      order.push(id)
      await step(world)
    }
    await Promise.all(Array.from({ length: 9 }, (_, index) => attempt(String(index))))
    expect(order.toSorted()).toEqual(Array.from({ length: 9 }, (_, index) => String(index)))
    expect(seen.most).toBe(2)
    expect(told).toHaveLength(1)
    expect(told[0]).toMatch(/has no free session \(2 at one time\): attempts wait in line/)
  })

  it('is given up where the worlds that wait are those that the others wait for', async () => {
    const server = await kept(startOpenEnv(cardOf(), withRoom(1).onSocket))
    const environment = await openOpenEnv({ url: server.url, patience: 0.1 })
    await kept(openTask(environment))
    await expect(openTask(environment)).rejects.toThrow(/nothing happened for 0.1 seconds: forks/)
  })

  it('is left by an attempt that is stopped', async () => {
    const server = await kept(startOpenEnv(cardOf(), withRoom(0).onSocket))
    const environment = await openOpenEnv({ url: server.url })
    const stop = new AbortController()
    const task = { id: 'a' as TaskId, data: environment.readTask({}) }
    const waiting = environment.open(task, { seed: 1, lanes, signal: stop.signal })
    stop.abort(new Error('enough'))
    await expect(waiting).rejects.toThrow('enough')
  })
})

describe('what a world refuses', () => {
  it('is shown to the policy where that is wanted', async () => {
    const refusal = '{"type":"error","data":{"code":"EXECUTION_ERROR","message":"no such move"}}'
    const server = await kept(
      startOpenEnv(
        cardOf(),
        hostile(socket => socket.send(refusal)),
      ),
    )
    const world = await opened(server, { errors: 'observe' })
    const { observed, calls } = await step(world)
    expect(observed?.[0]?.content).toMatch(/the world refuses \(EXECUTION_ERROR\): no such move/)
    expect(calls?.[0]?.problem).toBe('thrown')
  })
})

describe('openenv:URL', () => {
  const factories = { openenv: openEnvFactory(() => {}) }

  it('takes what the policy says as a field of the action', async () => {
    const sent: unknown[] = []
    const onSocket = hostile((socket, text) => {
      sent.push(JSON.parse(text))
      socket.send(observation('warm', { reward: 0.5, done: sent.length > 1 }))
    })
    const server = await kept(startOpenEnv(cardOf(), onSocket))
    const environment = await openEnvironment(`openenv:${server.url},say=guess`, factories)
    const world = await kept(openTask(environment))
    expect(world.tools).toEqual([])
    expect(await step(world, replyOf('four'))).toEqual({
      kind: 'continue',
      observed: [{ role: 'user', content: 'warm' }],
      reward: 0.5,
    })
    expect((await step(world, replyOf('five'))).kind).toBe('end')
    expect(sent[0]).toEqual({ type: 'step', data: { guess: 'four' } })
    expect(await world.report?.()).toEqual({ return: 1, rewarded: 2, done: true })
  })

  it('says what is wrong with a server before anything is rolled', async () => {
    const open = (text: string) => openEnvironment(text, factories)
    await expect(open('openenv:nowhere')).rejects.toThrow(/variant: Invalid URL/)
    await expect(open('openenv:http://127.0.0.1:9')).rejects.toThrow(
      /no OpenEnv server answers at http:\/\/127.0.0.1:9: /,
    )
    const other = await kept(
      startOpenEnv(
        () => ({ status: 200, body: [] }),
        () => {},
      ),
    )
    await expect(open(`openenv:${other.url}`)).rejects.toThrow(/schema is not what OpenEnv answers/)
    const liar = await kept(startOpenEnv(cardOf({ type: 'thing' }), () => {}))
    await expect(open(`openenv:${liar.url}`)).rejects.toThrow(/its action is not a JSON schema/)
    const game = await kept(startOpenEnv(cardOf(), () => {}))
    await expect(open(`openenv:${game.url},say=word`)).rejects.toThrow(/has the fields guess/)
  })
})

it('says which answer a server did not finish', async () => {
  const server = createServer((_, response) => {
    response.writeHead(200, { 'content-length': 100 })
    response.write('{"action"', () => response.destroy())
  })
  await once(server.listen(0, '127.0.0.1'), 'listening')
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  const opening = openOpenEnv({ url })
  await expect(opening).rejects.toThrow(`${url}/schema did not finish its answer: `)
  server.close()
})
