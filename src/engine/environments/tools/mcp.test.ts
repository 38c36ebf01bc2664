import { fileURLToPath } from 'node:url'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { type Served, serveMcp } from '../../../../test/fixtures/mcp-http.mjs'
import type { TaskId } from '../../../base/core/ids.ts'
import { makeLanes } from '../../../base/core/lane.ts'
import { withoutSecrets } from '../../../base/core/process/secrets.ts'
import { openEnvironment } from '../registry.ts'
import { replyOf } from '../reply.ts'
import { type McpServer, openMcpTools } from './mcp.ts'
import { readTools } from './run-calls.ts'

const program = fileURLToPath(new URL('../../../../test/fixtures/mcp-server.mjs', import.meta.url))
const stdio: McpServer = { command: [process.execPath, program] }
const { signal } = new AbortController()
const lanes = makeLanes({ policy: 8, tools: 8, environment: 8, reward: 8 })

let http: Served
beforeAll(async () => {
  http = await serveMcp()
})
afterAll(() => {
  http.server.closeAllConnections()
  http.server.close()
})

describe.each<[string, () => McpServer]>([
  ['standard streams', () => stdio],
  ['streamable HTTP', () => ({ url: http.url })],
])('a server over %s', (_, server) => {
  it('offers its tools, and their answers and errors become observations', async () => {
    await using opened = await openMcpTools(server(), { signal })
    expect(Object.values(opened.tools).every(tool => tool.effects === 'outside')).toBe(true)
    const { definitions, runCalls } = await readTools(opened.tools, { scope: 'mcp', lanes })
    expect(definitions[0]?.function).toMatchObject({
      name: 'add',
      description: 'Adds two numbers.',
      parameters: { type: 'object', required: ['a', 'b'] },
    })
    const reply = replyOf(
      '',
      { tool: 'add', input: { a: 2, b: 3 } },
      { tool: 'add', input: { a: 'two' } },
      { tool: 'fail' },
      { tool: 'picture' },
    )
    const { records } = await runCalls(reply.calls, { signal, messages: [], turn: 0 })
    expect(records.map(record => record.problem ?? record.output)).toEqual([
      '5',
      'invalid-arguments',
      'thrown',
      'a pear:\n[image image/png]',
    ])
    expect(records[2]?.output).toBe('Error: fail failed: no such thing')
  })

  it('is not waited for longer than its tools may take', async () => {
    await using opened = await openMcpTools(server(), { signal }, { limits: { seconds: 0.2 } })
    const { runCalls } = await readTools(opened.tools, { scope: 'mcp', lanes })
    const { calls } = replyOf('', { tool: 'hang' })
    const { records } = await runCalls(calls, { signal, messages: [], turn: 0 })
    expect(records[0]?.problem).toBe('timeout')
  })

  it('is asked only for the tools that are wanted, under a prefix', async () => {
    const options = { only: ['add'], prefix: 'math_' }
    await using opened = await openMcpTools(server(), { signal }, options)
    expect(Object.keys(opened.tools)).toEqual(['math_add'])
    const missing = openMcpTools(server(), { signal }, { only: ['divide'] })
    await expect(missing).rejects.toThrow(/has no tool divide. It has: add, fail/)
  })
})

it('says which server could not be reached', async () => {
  const command: [string, ...string[]] = ['no-such-program-here']
  await expect(openMcpTools({ command }, { signal })).rejects.toThrow(
    /No tools from MCP server no-such-program-here: .*ENOENT/,
  )
})

/** A server that lists these tools, and answers each call with the same. */
function answering(tools: readonly object[], called: object = {}): McpServer {
  const about = { capabilities: { tools: {} }, serverInfo: { name: 'own', version: '1' } }
  const answers = `line => {
    const { id, method, params } = JSON.parse(line)
    const { protocolVersion } = params ?? {}
    const result = {
      'tools/list': { tools: ${JSON.stringify(tools)} },
      'tools/call': ${JSON.stringify(called)},
    }[method] ?? { protocolVersion, ...${JSON.stringify(about)} }
    if (id !== undefined) console.log(JSON.stringify({ jsonrpc: '2.0', id, result }))
  }`
  const server = `require('node:readline').createInterface(process.stdin).on('line', ${answers})`
  return { command: [process.execPath, '-e', server] }
}

it.each([
  [['add', 'add'], /it lists two tools called add/],
  [[' '], /it lists a tool without a name/],
])('refuses a server whose tools cannot be told apart: %j', async (names, reason) => {
  const tools = names.map(name => ({ name, inputSchema: { type: 'object' } }))
  await expect(openMcpTools(answering(tools), { signal })).rejects.toThrow(reason)
})

it.each<[string, object, RegExp]>([
  ['has nothing of it', { content: [{ type: 'text', text: '5' }] }, /schema: must be object/],
  [
    'has something else',
    { content: [], structuredContent: { sum: 'five' } },
    /sum: must be number/,
  ],
  [
    'takes for ever to check',
    { content: [], structuredContent: { sum: 5, note: `${'a'.repeat(40)}!` } },
    /note: must match/,
  ],
])('fails at a server whose answer %s, against its own schema', async (_what, called, reason) => {
  const properties = { sum: { type: 'number' }, note: { type: 'string', pattern: '^(a+)+$' } }
  const outputSchema = { type: 'object', properties, required: ['sum'] }
  const server = answering([{ name: 'add', inputSchema: { type: 'object' }, outputSchema }], called)
  await using opened = await openMcpTools(server, { signal })
  const { runCalls } = await readTools(opened.tools, { scope: 'mcp', lanes })
  const { calls } = replyOf('', { tool: 'add' })
  const running = runCalls(calls, { signal, messages: [], turn: 0 })
  await expect(running).rejects.toMatchObject({
    boundary: 'tool',
    message: expect.stringMatching(reason),
  })
})

it('H4: what a server is reached with is kept secret', async () => {
  const headers = { Authorization: 'Bearer of-great-secrets', accept: 'application/json' }
  await openMcpTools(
    { url: 'http://127.0.0.1:1/?token=in-the-address', headers },
    { signal },
  ).catch(() => undefined)
  expect(withoutSecrets('of-great-secrets in-the-address application/json')).toBe(
    '[redacted] [redacted] application/json',
  )
})

it('opens as an environment by name, and leaves no session behind', async () => {
  const environment = await openEnvironment(`tool-loop:mcp=${http.url},match=number`)
  const before = http.sessions.size
  const task = { id: 'sum' as TaskId, data: environment.readTask({ prompt: '2 + 3?', answer: 5 }) }
  const world = await environment.open(task, { seed: 1, signal, lanes })
  expect(http.sessions.size).toBe(before + 1)
  const call = { signal, messages: world.opening, turn: 0 }
  const answer = await world.step(replyOf('', { tool: 'add', input: { a: 2, b: 3 } }), call)
  expect(answer.observed?.[0]?.content).toBe('5')
  await world[Symbol.asyncDispose]()
  expect(http.sessions.size).toBe(before)
})
