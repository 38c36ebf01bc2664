import { Client } from '@modelcontextprotocol/sdk/client/index.js'
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js'
import { afterEach, describe, expect, it } from 'vitest'
import { z } from 'zod'
import { makeLanes } from '../../base/core/lane.ts'
import { keyValue } from '../../engine/environments/built-in/key-value.ts'
import { checkEnvironment } from '../../engine/environments/check.ts'
import { environment } from '../../engine/environments/environment.ts'
import { playWorld } from '../../engine/environments/play.ts'
import { replyOf } from '../../engine/environments/reply.ts'
import { tool } from '../../engine/environments/tools/tool.ts'
import { openOpenEnv } from '../../worlds/openenv/openenv.ts'
import { connectSocket } from '../../worlds/openenv/sockets/handshake.ts'
import { Host, type HostOptions } from './host.ts'
import { type HostServerOptions, serveHost } from './server.ts'
import { listOfMadeTasks, listOfTasks } from './task-list.ts'

const { signal } = new AbortController()
const lanes = makeLanes({ policy: 4, tools: 4, environment: 4, reward: 4 })
const closing: AsyncDisposable[] = []
afterEach(async () => {
  for (const each of closing.splice(0)) await each[Symbol.asyncDispose]()
})

/** A shop whose reward has parts, and whose world can break. */
const shop = environment({
  name: 'shop',
  task: z.object({ stock: z.int(), wanted: z.int() }),
  open({ data }) {
    let left = data.stock
    const sell = tool({
      inputSchema: z.object({ pears: z.int() }),
      execute: ({ pears }) => {
        if (pears < 0) throw new Error('no such number')
        left -= pears
        return left
      },
    })
    const content = `sell ${data.wanted} pears`
    return { opening: [{ role: 'user', content }], tools: { sell }, report: () => ({ left }) }
  },
  reward: {
    right: ({ task: { data }, report }) => Number(report.left === data.stock - data.wanted),
    said: { weight: 0.5, score: ({ answer }) => Number(answer === 'done') },
  },
})

async function serving(options: Partial<HostOptions & HostServerOptions> = {}) {
  const tasks = listOfTasks([{ id: 'a' as never, data: { stock: 5, wanted: 2 } }])
  const host = new Host({ environment: shop, tasks, ...options })
  const server = await serveHost(host, { port: 0, ...options })
  closing.push(server)
  return server
}

/** What a socket answers to each of some messages. */
async function talk(url: string, messages: readonly object[]): Promise<readonly unknown[]> {
  const socket = await connectSocket(url, { signal })
  const answers: unknown[] = []
  await new Promise<void>(resolve => {
    const next = (): void => {
      const message = messages[answers.length]
      if (message) socket.send(JSON.stringify(message))
      else socket.close()
    }
    socket.listen({
      text(text) {
        answers.push(JSON.parse(text))
        next()
      },
      ended: () => resolve(),
    })
    next()
  })
  return answers
}

const call = (name: string, input: object) => ({
  type: 'step',
  data: { type: 'call_tool', tool_name: name, arguments: input },
})

describe('an environment of ours as an OpenEnv server', () => {
  it('is played by our own client, and passes its checks', async () => {
    const made = keyValue()
    const tasks = listOfMadeTasks(made as never, { count: 20, seed: 1 })
    const { url } = await serving({ environment: made as never, tasks })
    const remote = await openOpenEnv({ url })
    const results = await checkEnvironment(remote, {
      tasks: remote.makeTasks!({ count: 2, seed: 1 }),
      turns: 4,
    })
    expect(results.filter(({ kind }) => kind === 'failed')).toEqual([])
  })

  it('gives all of the reward with the last step', async () => {
    const { url } = await serving()
    const remote = await openOpenEnv({ url })
    const [task] = remote.makeTasks!({ count: 1, seed: 1 })
    await using world = await remote.open(task!, { seed: 1, lanes, signal })
    const turns = [
      replyOf('', { tool: 'sell', input: { pears: 2 } }),
      replyOf('', { tool: 'say', input: { text: 'done' } }),
    ]
    const player = ({ turn }: { turn: number }) => turns[turn]
    const play = await playWorld(world, task!, { player, turns: 5, signal })
    expect(play.outcome).toEqual({ kind: 'completed' })
    expect(play.report).toEqual({ return: 1.5, rewarded: 1, done: true })
  })

  it('says what is wrong as OpenEnv’s own server does, and stays open', async () => {
    const { url } = await serving()
    const answers = await talk(`${url}/ws`, [
      { type: 'dance' },
      { type: 'step', data: { tool_name: 4 } },
      { type: 'reset', data: { index: 7 } },
      { type: 'reset', data: { task: { stock: 1 } } },
      { type: 'reset', data: { task: { stock: 3, wanted: 1 }, seed: 4, unknown: 1 } },
      call('buy', {}),
      call('sell', { pears: -1 }),
      { type: 'state' },
    ])
    const codes = answers.map(each => (each as { data: { code?: string } }).data.code)
    const wrong = ['UNKNOWN_TYPE', ...Array(3).fill('VALIDATION_ERROR')]
    expect(codes).toEqual([...wrong, undefined, undefined, undefined, undefined])
    expect(answers[5]).toMatchObject({
      data: { observation: { error: { error_type: 'tool_not_found' } }, reward: null, done: false },
    })
    expect(answers[6]).toMatchObject({
      data: { observation: { error: { error_type: 'execution_error' } } },
    })
    expect(answers[7]).toMatchObject({ type: 'state', data: { step_count: 2, done: false } })
  })

  it('has room for so many, and says so to the next', async () => {
    const { url } = await serving({ sessions: 1 })
    const first = await connectSocket(`${url}/ws`, { signal })
    first.listen({ text() {}, ended() {} })
    const [answer] = await talk(`${url}/ws`, [{ type: 'reset' }])
    expect(answer).toMatchObject({
      type: 'error',
      data: { code: 'CAPACITY_REACHED', active_sessions: 1, max_sessions: 1 },
    })
    first.close()
  })

  it('fails a step of a world that breaks, and never scores it', async () => {
    const broken = environment({
      name: 'broken',
      task: z.object({}),
      open: () => ({
        opening: [{ role: 'user', content: 'go' }],
        step: () => {
          throw new Error('the disk is full')
        },
      }),
      reward: { nothing: () => 0 },
    })
    const tasks = listOfTasks([{ id: 'a' as never, data: {} }])
    const { url } = await serving({ environment: broken, tasks })
    const answers = await talk(`${url}/ws`, [{ type: 'reset' }, call('say', { text: 'x' })])
    expect(answers[1]).toMatchObject({
      type: 'error',
      data: { code: 'EXECUTION_ERROR', message: 'the disk is full' },
    })
  })

  it('lets in by its door’s rules, sockets as well', async () => {
    const { url } = await serving({ token: 'secret-token' })
    const open = (headers: Record<string, string>) =>
      connectSocket(`${url}/ws`, { signal, headers }).then(
        socket => {
          socket.destroy()
          return 101
        },
        (cause: Error) => Number(/answered (\d+)/.exec(cause.message)?.[1]),
      )
    const authorization = 'Bearer secret-token'
    expect(await open({})).toBe(401)
    expect(await open({ authorization: 'Bearer other-token' })).toBe(401)
    expect(await open({ authorization, host: 'evil.example' })).toBe(421)
    expect(await open({ authorization, origin: 'https://evil.example' })).toBe(403)
    expect(await open({ authorization })).toBe(101)
    expect((await fetch(`${url}/schema`)).status).toBe(401)
  })

  it('closes a client that does not wait for its answers', async () => {
    const { url } = await serving()
    const socket = await connectSocket(`${url}/ws`, { signal })
    const end = await new Promise(resolve => {
      socket.listen({ text() {}, ended: resolve })
      for (let at = 0; at < 40; at++) socket.send('{"type":"state"}')
    })
    expect(end).toMatchObject({ code: 1008, reason: 'one request at a time' })
  })
})

describe('an environment of ours as an MCP server', () => {
  it('is used by the protocol’s own client', async () => {
    const { url } = await serving()
    const client = new Client({ name: 'test', version: '1' })
    await client.connect(new StreamableHTTPClientTransport(new URL(`${url}/mcp?index=0`)))
    expect(client.getInstructions()).toBe('sell 2 pears')
    const { tools } = await client.listTools()
    expect(tools.map(({ name }) => name)).toEqual(['sell', 'say'])
    const wrong = await client.callTool({ name: 'sell', arguments: { pears: 'two' } })
    expect(wrong).toMatchObject({ isError: true, _meta: { done: false } })
    const sold = await client.callTool({ name: 'sell', arguments: { pears: 2 } })
    expect(sold).toMatchObject({ content: [{ type: 'text', text: '3' }], isError: false })
    const end = await client.callTool({ name: 'say', arguments: { text: 'done' } })
    expect(end._meta).toEqual({ done: true, reward: 1.5 })
    await client.close()
  })

  it('has sessions as OpenEnv’s clients begin them', async () => {
    const { url } = await serving()
    const ask = async (method: string, params: object = {}) => {
      const body = JSON.stringify({ jsonrpc: '2.0', id: 1, method, params })
      const headers = { 'content-type': 'application/json' }
      const response = await fetch(`${url}/mcp`, { method: 'POST', body, headers })
      return (await response.json()) as { result: Record<string, string>; error: { code: number } }
    }
    const { session_id: session } = (await ask('openenv/session/create')).result
    const sell = { name: 'sell', arguments: { pears: 1 }, session_id: session }
    expect((await ask('tools/call', sell)).result.data).toBe('4')
    expect((await ask('tools/call', sell)).result.data).toBe('3')
    expect((await ask('tools/call', { ...sell, arguments: {} })).error.code).toBe(-32603)
    expect((await ask('openenv/session/close', { session_id: session })).result.closed).toBe(true)
    expect((await ask('tools/call', sell)).error.code).toBe(-32602)
    expect((await ask('dance')).error.code).toBe(-32601)
  })

  it('H7: keeps no place for a session whose world did not open', async () => {
    const { url } = await serving({ sessions: 1 })
    const initialize = async (index: number) => {
      const params = { protocolVersion: '2025-06-18', capabilities: {} }
      const answer = await fetch(`${url}/mcp?index=${index}`, {
        method: 'POST',
        headers: { 'content-type': 'application/json' },
        body: JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'initialize', params }),
      })
      return { session: answer.headers.get('mcp-session-id'), ...((await answer.json()) as object) }
    }
    expect(await initialize(7)).toMatchObject({ session: null, error: expect.anything() })
    expect(await initialize(0)).toMatchObject({
      session: expect.any(String),
      result: expect.anything(),
    })
  })
})

it('H7: a world that is asked for during a reset is the new one, and none is left open', async () => {
  let open = 0
  const counted = environment({
    name: 'counted',
    task: z.object({}),
    open({ defer }) {
      open++
      defer(() => void open--)
      return { opening: [{ role: 'user', content: 'go' }] }
    },
  })
  const tasks = listOfTasks([{ id: 'a' as never, data: {} }])
  await using host = new Host({ environment: counted, tasks })
  const session = host.begin()
  await session.world()
  const [reset, meanwhile] = await Promise.all([session.reset({}), session.world()])
  expect([meanwhile === reset, open]).toEqual([true, 1])
  await session[Symbol.asyncDispose]()
  await session[Symbol.asyncDispose]()
  expect(open).toBe(0)
})
