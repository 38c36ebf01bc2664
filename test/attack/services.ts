import { request } from 'node:http'
import { tmpdir } from 'node:os'
import type { TaskId } from '../../src/base/core/ids.ts'
import { serveMetrics } from '../../src/doors/door/serve-metrics.ts'
import { serveModel } from '../../src/doors/gateway/serving/server.ts'
import { Host } from '../../src/doors/hosting/host.ts'
import { serveHost } from '../../src/doors/hosting/server.ts'
import { listOfTasks } from '../../src/doors/hosting/task-list.ts'
import { Rollouts } from '../../src/doors/service/rollouts.ts'
import { serveRollouts } from '../../src/doors/service/rollouts-server.ts'
import { Worlds } from '../../src/doors/service/rollouts-worlds.ts'
import { Library } from '../../src/doors/view/library.ts'
import { serveView } from '../../src/doors/view/serve.ts'
import { calculator } from '../../src/engine/environments/built-in/calculator.ts'
import { makeEstimate } from '../../src/engine/weigh/estimate.ts'
import { openModel } from '../../src/learn/model/model.ts'
import { buildVocabulary, tokenizerFiles } from '../../src/learn/model/vocabulary.ts'
import { makeMetrics } from '../../src/run/watch/telemetry/prometheus.ts'
import { openTestGateway } from '../gateway.ts'
import { dicePolicy, openByteRenderer } from '../rolling.ts'
import { type Attack, damagedJson, hold, oneOf } from './attack.ts'

const token = 'secret-token-of-the-service'

interface Service {
  readonly name: string
  readonly url: string
  /** What is answered to everybody on this machine. */
  readonly open: readonly string[]
  /** Requests that are right: a method, a path and a body. */
  readonly routes: readonly (readonly [string, string, unknown?])[]
}

const messages = [{ role: 'user', content: 'one two' }]

async function openServices(): Promise<readonly Service[]> {
  return [
    await openRollouts(),
    await openAgents(),
    await openServe(),
    await openView(),
    await openTold(),
    await openHost(),
  ]
}

async function openRollouts(): Promise<Service> {
  const renderer = await openByteRenderer()
  const environment = calculator()
  const rollouts = new Rollouts({
    parts: {
      environment,
      policy: dicePolicy(renderer),
      renderer,
      estimate: makeEstimate('grpo'),
      group: 1,
      limits: { turns: 1, tokens: 8 },
    },
    openPolicy: async uri => {
      throw new Error(`no endpoint ${uri}`)
    },
    findTask: async () => undefined,
  })
  const worlds = new Worlds({ environment, reward: environment.reward, most: 2 })
  const { url } = await serveRollouts({ rollouts, worlds }, { port: 0, token })
  const tasks = [{ prompt: '1 + 1', answer: '2' }]
  return {
    name: 'rollouts',
    url,
    open: ['/health'],
    routes: [
      ['POST', '/v1/rollouts', { id: 'a', tasks, format: 'trl', version: 1 }],
      ['GET', '/v1/rollouts/a'],
      ['GET', '/v1/rollouts/a/groups'],
      ['POST', '/v1/rollouts/a/acknowledge', { groups: [] }],
      ['DELETE', '/v1/rollouts/a'],
      ['POST', '/v1/worlds', { task: tasks[0] }],
      ['POST', '/v1/worlds/w/calls', { calls: [] }],
      ['POST', '/v1/weights', { version: 1 }],
      ['POST', '/v1/resume', {}],
      ['GET', '/metrics'],
    ],
  }
}

async function openAgents(): Promise<Service> {
  const renderer = await openByteRenderer()
  const secrets = { control: token, attempts: token, read: token }
  const { url } = await openTestGateway({ policy: dicePolicy(renderer), renderer, secrets })
  return {
    name: 'gateway',
    url,
    open: ['/health', '/rllm/health', '/openenv/health'],
    routes: [
      ['POST', '/attempts', { task: 'a' }],
      ['GET', '/attempts'],
      ['GET', '/attempts/a'],
      ['POST', '/attempts/a/reward', { reward: 1 }],
      ['POST', '/v1/chat/completions', { model: 'm', messages, max_tokens: 4 }],
      ['POST', '/v1/messages', { model: 'm', messages, max_tokens: 4 }],
      ['POST', '/v1/responses', { model: 'm', input: 'one' }],
      ['POST', '/rllm/sessions', { session_id: 's' }],
      ['POST', '/openenv/sessions', {}],
      ['GET', '/groups'],
    ],
  }
}

async function openServe(): Promise<Service> {
  const files = tokenizerFiles(buildVocabulary(['one two three']))
  const size = { width: 16, layers: 1, heads: 1, hidden: 16, context: 32 }
  const { model: told } = JSON.parse(new TextDecoder().decode(files.get('tokenizer.json'))) as {
    model: { vocab: object }
  }
  const shape = { ...size, vocabulary: Object.keys(told.vocab).length }
  const model = await openModel({ shape, seed: 2, files }, { threads: 1 })
  const weightFolders = [tmpdir()]
  const options = { folder: 'models/tiny', port: 0, token, weightFolders }
  const { url } = await serveModel(model, options)
  const sampling_params = { max_new_tokens: 2, temperature: 1 }
  return {
    name: 'serve',
    url,
    open: ['/health', '/health_generate', '/ping'],
    routes: [
      ['POST', '/generate', { input_ids: [1, 2], sampling_params }],
      ['POST', '/v1/completions', { model: 'm', prompt: [1, 2], max_tokens: 2 }],
      ['POST', '/v1/chat/completions', { model: 'm', messages, max_tokens: 2 }],
      ['POST', '/update_weights_from_disk', { model_path: '/etc' }],
      ['POST', '/abort_request', { rid: 'a' }],
      ['GET', '/v1/models'],
      ['GET', '/get_model_info'],
    ],
  }
}

async function openHost(): Promise<Service> {
  const environment = calculator()
  const task = environment.readTask({ prompt: '1 + 1', answer: '2' })
  const tasks = listOfTasks([{ id: 'a' as TaskId, data: task }])
  const { url } = await serveHost(new Host({ environment, tasks, sessions: 8 }), { port: 0, token })
  const call = { jsonrpc: '2.0', id: 1 }
  const hello = { protocolVersion: '2025-06-18', capabilities: {}, clientInfo: { name: 'a' } }
  const named = { name: 'calculate', arguments: { expression: '1+1' } }
  return {
    name: 'environment serve',
    url,
    open: ['/health'],
    routes: [
      ['GET', '/schema'],
      ['GET', '/metadata'],
      ['GET', '/state'],
      ['POST', '/reset', { seed: 1 }],
      ['POST', '/step', { action: { tool_name: 'calculate', arguments: {} } }],
      ['GET', '/list_environments'],
      ['GET', `/${environment.name}/splits`],
      ['POST', `/${environment.name}/tasks`, { split: 'train' }],
      ['POST', `/${environment.name}/task_range`, { split: 'train', start: 0, stop: 2 }],
      ['POST', '/mcp', { ...call, method: 'initialize', params: hello }],
      ['POST', '/mcp', { ...call, method: 'tools/list', params: {} }],
      ['POST', '/mcp', { ...call, method: 'tools/call', params: named }],
      ['DELETE', '/mcp'],
    ],
  }
}

async function openView(): Promise<Service> {
  const { url } = await serveView(new Library(), { token })
  return {
    name: 'view',
    url,
    open: [],
    routes: [
      ['GET', '/'],
      ['GET', '/api/runs'],
      ['GET', '/api/runs/a'],
      ['GET', '/api/compare?a=1&b=2'],
      ['GET', '/assets/..%2f..%2fpackage.json'],
      ['POST', '/api/import', { a: 1 }],
    ],
  }
}

async function openTold(): Promise<Service> {
  const { url } = await serveMetrics(makeMetrics(), 0)
  const { origin } = new URL(url)
  return { name: 'metrics', url: origin, open: ['/metrics'], routes: [['GET', '/metrics']] }
}

interface Asked {
  readonly method: string
  readonly path: string
  readonly headers: Readonly<Record<string, string>>
  readonly body: string
}

/** Sends a request as it is, and takes only the code of the answer: some have no end. */
async function codeOf(url: string, { method, path, headers, body }: Asked): Promise<number> {
  return await new Promise((resolve, reject) => {
    const { hostname, port } = new URL(url)
    const length = method === 'GET' ? {} : { 'content-length': String(Buffer.byteLength(body)) }
    const sent = request({ hostname, port, method, path, headers: { ...headers, ...length } })
    sent.on('response', answer => {
      answer.on('error', () => undefined)
      resolve(answer.statusCode ?? 0)
      answer.destroy()
    })
    sent.on('error', reject)
    sent.end(method === 'GET' ? undefined : body)
  })
}

const others = [undefined, 'https://evil.example', 'null', 'http://127.0.0.1.evil.example']
const types = ['application/json', 'text/plain', 'application/x-www-form-urlencoded', undefined]
const tokens = [`Bearer ${token}`, 'Bearer wrong', undefined]
const oddPaths = [
  '/%00',
  '/%',
  '/v1/rollouts/%2e%2e%2f',
  '/api/runs/__proto__',
  '/constructor',
  '//',
]
const oddBodies = ['', '{', 'null', '[]', '1', `${'['.repeat(500)}`, '{"__proto__":{"a":1}}']

/** Requests on every route of every service: nothing without a token, and no request causes a server error. */
export const services: Attack = {
  name: 'services',
  promise: 'H2',
  share: 10,
  async open() {
    const all = await openServices()
    return async draw => {
      const service = oneOf(all, draw)
      const [method, right, example] = oneOf(service.routes, draw)
      const path = draw() < 0.15 ? oneOf(oddPaths, draw) : right
      const damaged = JSON.stringify(draw() < 0.5 ? example : damagedJson(example ?? {}, draw))
      const body = draw() < 0.2 ? oneOf(oddBodies, draw) : (damaged ?? '')
      const given = {
        origin: oneOf(others, draw),
        type: oneOf(types, draw),
        token: oneOf(tokens, draw),
        host: draw() < 0.2 ? oneOf(['evil.example', 'localhost.evil.example'], draw) : undefined,
        cookie: draw() < 0.2 ? 'espalier-view=%' : undefined,
      }
      const headers = {
        ...(given.host !== undefined && { host: given.host }),
        ...(given.origin !== undefined && { origin: given.origin }),
        ...(given.type !== undefined && { 'content-type': given.type }),
        ...(given.token !== undefined && { authorization: given.token }),
        ...(given.cookie !== undefined && { cookie: given.cookie }),
      }
      const code = await codeOf(service.url, { method, path, headers, body })
      const told = `${service.name}: ${method} ${path} ${JSON.stringify(headers)} ${body.slice(0, 200)} was answered ${code}`
      hold(code < 500 || code === 501 || code === 503, told)
      if (code >= 300) return
      hold(given.host === undefined && given.origin === undefined, told)
      hold(given.token === tokens[0] || service.open.includes(path.split('?')[0]!), told)
      hold(method !== 'POST' || given.type === 'application/json', told)
    }
  },
}
