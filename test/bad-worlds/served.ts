import { once } from 'node:events'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import type { Environment } from '../../src/base/core/environment.ts'
import { toolLoop } from '../../src/engine/environments/built-in/tool-loop.ts'
import { type McpServer, openMcpTools } from '../../src/engine/environments/tools/mcp.ts'
import { type OpenEnvOptions, openOpenEnv } from '../../src/worlds/openenv/openenv.ts'
import type { TextSocket } from '../../src/worlds/openenv/sockets/text-socket.ts'
import { remoteWorkspaces } from '../../src/worlds/workspaces/remote.ts'
import { cardOf, startOpenEnv } from '../openenv-server.ts'
import { call } from '../rolling.ts'
import type { BadCase, Closing, KindOfWorld, Meeting } from './contract.ts'
import { clock, notes } from './own.ts'

type Serve = (request: IncomingMessage, response: ServerResponse) => unknown

/** A server at any free port, for as long as a test runs. */
async function serve(closing: Closing, handle: Serve): Promise<string> {
  const server = createServer((request, response) => void handle(request, response))
  await once(server.listen(0, '127.0.0.1'), 'listening')
  closing.push(() => server.close(() => undefined).closeAllConnections())
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`
}

/** Sends endless data as long as somebody reads it. */
function pour(response: ServerResponse): void {
  const piece = Buffer.alloc(2 ** 20, 'x')
  const more = (): void => {
    while (!response.destroyed && response.write(piece));
  }
  response.on('drain', more).on('error', () => undefined)
  more()
}

// ---- OpenEnv

const observation = (hint: unknown, rest: object = { reward: null, done: false }): string =>
  JSON.stringify({ type: 'observation', data: { observation: { hint }, ...rest } })
const refusal = (code: string): string =>
  JSON.stringify({ type: 'error', data: { code, message: 'oh' } })

/** A server whose first steps are bad in sessions that were reset with seed 13. */
const openEnv =
  (bad: (socket: TextSocket) => void, options: Partial<OpenEnvOptions> = {}) =>
  async (closing: Closing): Promise<Meeting> => {
    const card = (path: string) => {
      const { status, body } = cardOf()(path)
      const schema = { type: 'object', properties: { hint: { type: 'string' } } }
      const said = path === '/schema' ? { ...(body as object), observation: schema } : body
      return { status, body: said }
    }
    const server = await startOpenEnv(card, socket => {
      let isBad = false
      socket.listen({
        text(text) {
          const { type, data } = JSON.parse(text) as { type: string; data?: { seed?: number } }
          if (type === 'close') return socket.close()
          if (type !== 'reset') {
            return isBad ? bad(socket) : socket.send(observation('fine', { reward: 1, done: true }))
          }
          isBad = data?.seed === 13
          socket.send(observation('begin'))
        },
        ended() {},
      })
    })
    closing.push(() => server[Symbol.asyncDispose]())
    const environment = (await openOpenEnv({ url: server.url, ...options })) as Environment
    const at = (seed: number) => ({ reset: { seed } })
    const act = [call('act', { guess: 1 }), call('act', { guess: 2 }), 'done']
    return { environment, bad: at(13), good: at(14), says: { bad: act, good: act } }
  }

const sends = (...texts: readonly string[]) =>
  openEnv(socket => {
    for (const text of texts) socket.send(text)
  })

export const openEnvServers: KindOfWorld = {
  kind: 'a server of OpenEnv',
  boundary: 'environment',
  cases: [
    {
      badness: 'hangs',
      reason: /gave no answer within 0.2 seconds/,
      meet: openEnv(() => {}, { seconds: 0.2 }),
    },
    {
      badness: 'dies',
      reason: /closed the world’s socket \(1006/,
      meet: openEnv(it => it.destroy()),
    },
    {
      badness: 'dies',
      how: 'closes',
      reason: /\(1011, out of memory\)/,
      meet: openEnv(socket => socket.close(1011, 'out of memory')),
    },
    {
      badness: 'dies',
      how: 'breaks',
      reason: /refuses \(EXECUTION_ERROR\): oh/,
      meet: sends(refusal('EXECUTION_ERROR')),
    },
    {
      badness: 'lies',
      how: 'no JSON',
      reason: /not JSON: \{"type": NaN\}/,
      meet: sends('{"type": NaN}'),
    },
    {
      badness: 'lies',
      how: 'another thing',
      reason: /is not an obs/,
      meet: sends('{"type":"state","data":{}}'),
    },
    {
      badness: 'lies',
      how: 'rewards with a text',
      reason: /is not an observation: .*reward/,
      meet: sends(observation('x', { reward: 'much', done: false })),
    },
    {
      badness: 'lies',
      how: 'about what is seen',
      reason: /not what the server’s schema says: hint: must be string/,
      meet: sends(observation(4)),
    },
    {
      badness: 'lies',
      how: 'refuses what its own schema allows',
      reason: /refuses \(VALIDATION_ERROR\): oh\. errors=observe/,
      meet: sends(refusal('VALIDATION_ERROR')),
    },
    {
      badness: 'floods',
      reason: /a message is longer than 10000 bytes/,
      meet: openEnv(socket => socket.send(observation('x'.repeat(50_000))), { bytes: 10_000 }),
    },
    {
      badness: 'answers out of turn',
      reason: /answered out of turn: .*and one more/,
      meet: sends(observation('one'), observation('and one more', { reward: 1, done: true })),
    },
  ],
}

// ---- MCP

interface Asked {
  readonly id?: number
  readonly method: string
  readonly params?: { readonly name?: string; readonly protocolVersion?: string }
}

const result = (id: unknown, value: object): string =>
  JSON.stringify({ jsonrpc: '2.0', id, result: value })
const tool = (name: string) => ({ name, inputSchema: { type: 'object', properties: {} } })
const text = (said: string) => ({ content: [{ type: 'text', text: said }] })

/** What a server that speaks MCP answers to what is not bad. */
function usual({ id, method, params }: Asked): string | undefined {
  if (method === 'initialize') {
    const { protocolVersion } = params ?? {}
    const serverInfo = { name: 'bad', version: '1' }
    return result(id, { protocolVersion, capabilities: { tools: {} }, serverInfo })
  }
  if (method === 'tools/list') return result(id, { tools: [tool('fine'), tool('bad')] })
  if (method === 'ping') return result(id, {})
  return params?.name === 'fine' ? result(id, text('5')) : undefined
}

type Answer = (response: ServerResponse, asked: Asked) => void

/** A server over HTTP; `bad` answers calls of the tool of that name, and pings from then on. */
async function mcpServer(closing: Closing, bad: Answer): Promise<McpServer> {
  const url = await serve(closing, async (request, response) => {
    if (request.method !== 'POST') return response.writeHead(405).end()
    let body = ''
    for await (const part of request) body += part
    const asked = JSON.parse(body) as Asked
    if (asked.id === undefined) return response.writeHead(202).end()
    response.setHeader('content-type', 'application/json')
    const isBad = asked.params?.name === 'bad' || asked.method === 'ping'
    return isBad ? bad(response, asked) : response.end(usual(asked))
  })
  return { url }
}

/** A server that is a program; `bad` is what it runs when its tool `bad` is called. */
function mcpProgram(bad: string): McpServer {
  const program = `
    const tool = name => ({ name, inputSchema: { type: 'object', properties: {} } })
    const send = (id, result) => process.stdout.write(JSON.stringify({ jsonrpc: '2.0', id, result }) + '\\n')
    const text = text => ({ content: [{ type: 'text', text }] })
    require('node:readline').createInterface(process.stdin).on('line', line => {
      const { id, method, params = {} } = JSON.parse(line)
      if (method === 'initialize') send(id, { protocolVersion: params.protocolVersion, capabilities: { tools: {} }, serverInfo: { name: 'bad', version: '1' } })
      else if (method === 'tools/list') send(id, { tools: [tool('fine'), tool('bad')] })
      else if (params.name === 'fine') send(id, text('5'))
      else if (params.name === 'bad') { ${bad} }
    })`
  return { command: [process.execPath, '-e', program] }
}

function mcp(open: (closing: Closing) => McpServer | Promise<McpServer>): Pick<BadCase, 'meet'> {
  return {
    async meet(closing) {
      const server = await open(closing)
      const environment = toolLoop({
        match: 'number',
        tools: async given => {
          const options = { limits: { seconds: 0.3 }, pingSeconds: 0.2, bytes: 100_000 }
          return (await openMcpTools(server, given, options)).tools
        },
      }) as Environment
      const data = { prompt: '2 + 3?', answer: 5 }
      // A policy that only sees the error would still give the answer and be scored.
      const says = { bad: [call('bad', {}), '5'], good: [call('fine', {}), '5'] }
      return { environment, bad: data, good: data, says }
    },
  }
}

const overHttp = (bad: Answer): Pick<BadCase, 'meet'> => mcp(closing => mcpServer(closing, bad))

function asEvents(response: ServerResponse, ...messages: readonly string[]): void {
  response.setHeader('content-type', 'text/event-stream')
  for (const message of messages) response.write(`event: message\ndata: ${message}\n\n`)
}

export const mcpServers: KindOfWorld = {
  kind: 'an MCP server',
  boundary: 'tool',
  cases: [
    {
      badness: 'hangs',
      reason: /hangs: no answer within 0.3 seconds, nor to a ping in 0.2 more/,
      ...overHttp(() => {}),
    },
    { badness: 'dies', reason: /does not answer/, ...overHttp(response => response.destroy()) },
    {
      badness: 'dies',
      how: 'as a program',
      reason: /does not answer: .*closed/,
      ...mcp(() => mcpProgram('process.exit(1)')),
    },
    {
      badness: 'lies',
      how: 'about its results',
      reason: /does not answer: .*content/s,
      ...overHttp((response, { id }) => response.end(result(id, { content: 'five' }))),
    },
    {
      badness: 'lies',
      how: 'no JSON',
      reason: /does not answer/,
      ...overHttp(response => response.end('<html>')),
    },
    {
      badness: 'floods',
      reason: /it sent a message of more than 100000 bytes/,
      ...overHttp(pour),
    },
    {
      badness: 'floods',
      how: 'in a stream of events',
      reason: /it sent a message of more than 100000 bytes/,
      ...overHttp(response => {
        asEvents(response)
        response.write('data: ')
        pour(response)
      }),
    },
    {
      badness: 'floods',
      how: 'as a program',
      reason: /it sent too much: .*100000 bytes/,
      ...mcp(() => mcpProgram("process.stdout.write('x'.repeat(300000))")),
    },
    {
      badness: 'answers out of turn',
      reason: /it answered out of turn: .*unknown message ID/,
      ...overHttp((response, { id }) =>
        asEvents(response, result(99, text('5')), result(id, text('5'))),
      ),
    },
    {
      badness: 'answers out of turn',
      how: 'twice, as a program',
      reason: /it answered out of turn: .*unknown message ID/,
      ...mcp(() => mcpProgram("send(99, text('5'))")),
    },
  ],
}

// ---- A sandbox server

const about = { protocol: 1, name: 'bad', isolation: { standing: [], missing: [] } }
const ended = { end: 'exited', code: 0, output: 'a.txt\n', complaints: '', cut: 0 }

/** A server of workspaces; `bad` answers commands of those that begin in `/bad`. */
const sandbox =
  (bad: (response: ServerResponse) => void, options: Meeting['options'] = {}) =>
  async (closing: Closing): Promise<Meeting> => {
    const url = await serve(closing, async (request, response) => {
      let body = ''
      for await (const part of request) body += part
      if (request.url === '/') return response.end(JSON.stringify(about))
      if (request.url === '/workspaces') {
        return response.end(JSON.stringify({ id: body.includes('"/bad"') ? 'bad' : 'good' }))
      }
      if (request.method === 'DELETE') return response.end('{}')
      return request.url?.includes('/bad/') ? bad(response) : response.end(JSON.stringify(ended))
    })
    return { ...notes(await remoteWorkspaces({ url })), options }
  }

export const sandboxServers: KindOfWorld = {
  kind: 'a server of sandboxes',
  boundary: 'environment',
  cannot: { 'answers out of turn': 'an answer of HTTP belongs to its request' },
  cases: [
    { badness: 'hangs', reason: 'aborted', meet: sandbox(() => {}, clock) },
    {
      badness: 'dies',
      reason: /POST \/workspaces\/bad\/run\): /,
      meet: sandbox(response => void response.destroy()),
    },
    {
      badness: 'dies',
      how: 'has lost the workspace',
      reason: /404 no such workspace/,
      meet: sandbox(response => void response.writeHead(404).end('{"error":"no such workspace"}')),
    },
    {
      badness: 'lies',
      how: 'no JSON',
      reason: /not what the protocol has/,
      meet: sandbox(response => void response.end('<html>')),
    },
    {
      badness: 'lies',
      how: 'about what became of it',
      reason: /not what the protocol has: .*code/,
      meet: sandbox(response => void response.end('{"end":"exited","code":"0","output":4}')),
    },
    { badness: 'floods', reason: /it sent more than \d+ bytes|terminated/, meet: sandbox(pour) },
  ],
}
