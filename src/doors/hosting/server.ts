import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import { z } from 'zod'
import { describeCause } from '../../base/core/failure.ts'
import { packageVersion } from '../../base/core/process/package-version.ts'
import { openDoor } from '../door/door.ts'
import { FullError, type Host, type HostSession } from './host.ts'
import { answerRpc, readRpc, rpcCodes, rpcError, rpcResult } from './mcp.ts'
import { openingOf, wantedTask } from './openenv-messages.ts'
import { openEnvSchemas } from './openenv-schemas.ts'
import { addSockets } from './sockets.ts'
import { NotServedError, type Wanted } from './task-list.ts'

/** Where a server listens, and who may use it. */
export interface HostServerOptions {
  /** 0 takes any free one. @default 8000 */
  readonly port?: number
  /** @default '127.0.0.1' */
  readonly host?: string
  /** What clients send as bearer. Without one only this machine may connect. */
  readonly token?: string
  /** Names besides its address that clients may call it by. */
  readonly allowedHosts?: readonly string[]
}

/** A server that listens; disposing of it ends its sessions. */
export interface HostServer extends AsyncDisposable {
  readonly url: string
}

const bodyBytes = 4 * 2 ** 20

/** Serves an environment as an OpenEnv server and as an MCP server, at one address. */
export async function serveHost(host: Host, options: HostServerOptions = {}): Promise<HostServer> {
  const door = { ...options, host: options.host ?? '127.0.0.1' }
  const server = openDoor({ ...door, bodyBytes })
  server.setErrorHandler(async (cause, _request, reply) => {
    const { statusCode } = cause as { statusCode?: number }
    const code = cause instanceof NotServedError ? 400 : (statusCode ?? 500)
    await reply.code(code).send({ detail: describeCause(cause) })
  })
  addAbout(server, host)
  addTasks(server, host)
  addMcp(server, host)
  const endSockets = addSockets(server.server, host, { ...door, bytes: bodyBytes })
  const url = await server.listen({ port: options.port ?? 8000, host: door.host })
  return {
    url,
    async [Symbol.asyncDispose]() {
      endSockets()
      await server.close()
      await host[Symbol.asyncDispose]()
    },
  }
}

function addAbout(server: FastifyInstance, host: Host): void {
  const { name } = host.environment
  server.get('/health', { config: { needsNoToken: true } }, async () => ({ status: 'healthy' }))
  server.get('/schema', async () => openEnvSchemas)
  server.get('/metadata', async () => ({
    name,
    description: `The environment ${name}, served by Espalier: its actions are calls of tools.`,
    readme_content: null,
    version: packageVersion(),
    author: null,
    documentation_url: null,
  }))
  server.get('/state', async () => ({ episode_id: null, step_count: 0 }))
  server.post('/reset', async ({ body }) => {
    await using session = host.begin()
    const world = await session.reset(parse(wantedTask, body ?? {}))
    return { observation: { metadata: {}, ...openingOf(world) }, reward: null, done: false }
  })
  server.post('/step', async (_request, reply) => {
    const detail = 'over HTTP each step would have a world of its own: play at the socket /ws'
    await reply.code(409).send({ detail })
  })
}

const ofSplit = z.object({ split: z.string().optional() })
const ofIndex = ofSplit.extend({ index: z.int().min(0) })
const ofRange = ofSplit.extend({
  start: z.int().nullish(),
  stop: z.int().nullish(),
})
const splitTypes = ['train', 'validation', 'test']

function addTasks(server: FastifyInstance, { environment, tasks }: Host): void {
  const { name } = environment
  const path = `/${encodeURIComponent(name)}`
  const specs = (split: string | undefined) =>
    tasks.of(split).map(({ id, data }, index) => ({ id, index, data }))
  server.get('/list_environments', async () => [name])
  server.get(`${path}/splits`, async () =>
    tasks.splits.map(split => ({
      name: split,
      type: splitTypes.includes(split) ? split : 'validation',
    })),
  )
  server.post(`${path}/tasks`, async ({ body }) => ({
    tasks: specs(parse(ofSplit, body).split),
    env_name: name,
  }))
  server.post(`${path}/num_tasks`, async ({ body }) => ({
    num_tasks: tasks.of(parse(ofSplit, body).split).length,
  }))
  server.post(`${path}/task`, async ({ body }) => {
    const { split, index } = parse(ofIndex, body)
    const task = specs(split)[index]
    if (!task) throw new NotServedError('Invalid task index')
    return { task }
  })
  server.post(`${path}/task_range`, async ({ body }) => {
    const { split, start, stop } = parse(ofRange, body)
    return { tasks: specs(split).slice(start ?? 0, stop ?? undefined) }
  })
}

/**
 * MCP over HTTP, as its own clients speak it (`initialize`, a session in a header), and as OpenEnv's
 * do (`openenv/session/create`, a session in the parameters).
 */
function addMcp(server: FastifyInstance, host: Host): void {
  server.post('/mcp', async (request, reply) => {
    const asked = readRpc(request.body)
    if (!asked) return rpcError(null, rpcCodes.notRequest, 'Invalid request: not JSON-RPC 2.0')
    const { id, method, params = {} } = asked
    if (method.startsWith('notifications/')) return await reply.code(202).send()
    if (method === 'openenv/session/close') return await closeSession(host, id, params.session_id)
    const begins = method === 'openenv/session/create' || method === 'initialize'
    const named = request.headers['mcp-session-id'] ?? params.session_id
    if (named !== undefined && !begins) {
      const session = host.find(String(named))
      const isMcp = request.headers['mcp-session-id'] !== undefined
      if (session) return await answerRpc(asked, session, isMcp ? 'mcp' : 'openenv')
      void reply.code(isMcp ? 404 : 200)
      return rpcError(id, rpcCodes.badParams, `Unknown session_id: ${String(named).slice(0, 100)}`)
    }
    try {
      const session = host.begin(wantedOf(request))
      if (begins) return await beginSession(asked, session, reply)
      await using _ = session
      return await answerRpc(asked, session, 'openenv')
    } catch (cause) {
      return refused(id, cause)
    }
  })
  server.delete('/mcp', async (request, reply) => {
    const session = host.find(String(request.headers['mcp-session-id']))
    await session?.[Symbol.asyncDispose]()
    await reply.code(session ? 200 : 404).send()
  })
  server.get('/mcp', async (_request, reply) => {
    await reply.code(405).header('allow', 'POST, DELETE').send({ detail: 'POST requests here' })
  })
}

async function beginSession(
  { id, ...asked }: { readonly id?: unknown; readonly method: string },
  session: HostSession,
  reply: FastifyReply,
): Promise<object | undefined> {
  if (asked.method === 'openenv/session/create') return rpcResult(id, { session_id: session.id })
  const answer = await answerRpc({ id, ...asked }, session, 'mcp')
  // A session whose world did not open is nobody's, and would take a place until it is idle.
  if (answer && 'error' in answer) await session[Symbol.asyncDispose]()
  else void reply.header('mcp-session-id', session.id)
  return answer
}

async function closeSession(host: Host, id: unknown, named: unknown): Promise<object> {
  if (named === undefined) {
    return rpcError(id, rpcCodes.badParams, "Invalid params - 'session_id' is required")
  }
  const session = host.find(String(named))
  if (!session) return rpcError(id, rpcCodes.badParams, `Unknown session_id: ${String(named)}`)
  const result = { session_id: session.id }
  if (session.isAttached) return rpcResult(id, { ...result, closed: false, closing: true })
  await session[Symbol.asyncDispose]()
  return rpcResult(id, { ...result, closed: true })
}

function refused(id: unknown, cause: unknown): object {
  if (cause instanceof FullError) {
    const counts = { active_sessions: cause.active, max_sessions: cause.most }
    return rpcError(id, rpcCodes.server, cause.message, counts)
  }
  return rpcError(id, rpcCodes.server, describeCause(cause))
}

/** Which task a session of MCP is for: by the query of its address, `/mcp?split=test&index=3`. */
function wantedOf({ query }: FastifyRequest): Wanted {
  const { index, seed, ...rest } = query as Readonly<Record<string, string>>
  return parse(wantedTask, {
    ...rest,
    ...(index !== undefined && { index: Number(index) }),
    ...(seed !== undefined && { seed: Number(seed) }),
  })
}

function parse<Schema extends z.ZodType>(schema: Schema, body: unknown): z.output<Schema> {
  const result = schema.safeParse(body)
  if (result.success) return result.data
  throw new NotServedError(z.prettifyError(result.error).replaceAll('\n', ' '))
}
