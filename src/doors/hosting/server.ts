import { z } from 'zod'
import { describeCause } from '../../base/core/failure.ts'
import { packageVersion } from '../../base/core/process/package-version.ts'
import { Door, everybody, statusOf } from '../door/door.ts'
import { RefusedRequest } from '../door/refused-request.ts'
import type { Reply } from '../door/reply.ts'
import type { RequestHead } from '../door/request.ts'
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
  const entry = { ...options, host: options.host ?? '127.0.0.1' }
  const door = new Door({ ...entry, bodyBytes, tell })
  addAbout(door, host)
  addTasks(door, host)
  addMcp(door, host)
  const endSockets = addSockets(door.server, host, { ...entry, bytes: bodyBytes })
  const url = await door.listen(options.port ?? 8000)
  return {
    url,
    async [Symbol.asyncDispose]() {
      endSockets()
      await door.close()
      await host[Symbol.asyncDispose]()
    },
  }
}

/** As OpenEnv's own server tells what is wrong. */
function tell(cause: unknown, _request: RequestHead, reply: Reply): void {
  reply.status = cause instanceof NotServedError ? 400 : statusOf(cause)
  reply.give({ detail: describeCause(cause) })
}

function addAbout(door: Door, host: Host): void {
  const { name } = host.environment
  door.get('/health', { admit: everybody }, async () => ({ status: 'healthy' }))
  door.get('/schema', async () => openEnvSchemas)
  door.get('/metadata', async () => ({
    name,
    description: `The environment ${name}, served by Espalier: its actions are calls of tools.`,
    readme_content: null,
    version: packageVersion(),
    author: null,
    documentation_url: null,
  }))
  door.get('/state', async () => ({ episode_id: null, step_count: 0 }))
  door.post('/reset', async request => {
    const wanted = parse(wantedTask, (await request.json()) ?? {})
    await using session = host.begin()
    const world = await session.reset(wanted)
    return { observation: { metadata: {}, ...openingOf(world) }, reward: null, done: false }
  })
  door.post('/step', () => {
    const reason = 'over HTTP each step would have a world of its own: play at the socket /ws'
    throw new RefusedRequest(409, reason)
  })
}

const ofSplit = z.object({ split: z.string().optional() })
const ofIndex = ofSplit.extend({ index: z.int().min(0) })
const ofRange = ofSplit.extend({
  start: z.int().nullish(),
  stop: z.int().nullish(),
})
const splitTypes = ['train', 'validation', 'test']

function addTasks(door: Door, { environment, tasks }: Host): void {
  const { name } = environment
  // Clients write the name into the path as it is, or escape what is special in it.
  const own = [name, encodeURIComponent(name)]
  const at = (what: string) => (path: string) =>
    own.some(each => path === `/${each}/${what}`) ? {} : undefined
  const specs = (split: string | undefined) =>
    tasks.of(split).map(({ id, data }, index) => ({ id, index, data }))
  door.get('/list_environments', async () => [name])
  door.get(at('splits'), () =>
    tasks.splits.map(split => ({
      name: split,
      type: splitTypes.includes(split) ? split : 'validation',
    })),
  )
  door.post(at('tasks'), async request => ({
    tasks: specs(parse(ofSplit, await request.json()).split),
    env_name: name,
  }))
  door.post(at('num_tasks'), async request => ({
    num_tasks: tasks.of(parse(ofSplit, await request.json()).split).length,
  }))
  door.post(at('task'), async request => {
    const { split, index } = parse(ofIndex, await request.json())
    const task = specs(split)[index]
    if (!task) throw new NotServedError('Invalid task index')
    return { task }
  })
  door.post(at('task_range'), async request => {
    const { split, start, stop } = parse(ofRange, await request.json())
    return { tasks: specs(split).slice(start ?? 0, stop ?? undefined) }
  })
}

/**
 * MCP over HTTP, as its own clients speak it (`initialize`, a session in a header), and as OpenEnv's
 * do (`openenv/session/create`, a session in the parameters).
 */
function addMcp(door: Door, host: Host): void {
  door.post('/mcp', async (request, reply) => {
    const asked = readRpc(await request.json())
    if (!asked) return rpcError(null, rpcCodes.notRequest, 'Invalid request: not JSON-RPC 2.0')
    const { id, method, params = {} } = asked
    if (method.startsWith('notifications/')) return reply.empty(202)
    if (method === 'openenv/session/close') return await closeSession(host, id, params.session_id)
    const begins = method === 'openenv/session/create' || method === 'initialize'
    const named = request.headers['mcp-session-id'] ?? params.session_id
    if (named !== undefined && !begins) {
      const session = host.find(String(named))
      const isMcp = request.headers['mcp-session-id'] !== undefined
      if (session) return await answerRpc(asked, session, isMcp ? 'mcp' : 'openenv')
      reply.status = isMcp ? 404 : 200
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
  door.delete('/mcp', async (request, reply) => {
    const session = host.find(String(request.headers['mcp-session-id']))
    await session?.[Symbol.asyncDispose]()
    reply.status = session ? 200 : 404
  })
  door.get('/mcp', (_request, reply) => {
    reply.header('allow', 'POST, DELETE')
    throw new RefusedRequest(405, 'POST requests here')
  })
}

async function beginSession(
  { id, ...asked }: { readonly id?: unknown; readonly method: string },
  session: HostSession,
  reply: Reply,
): Promise<object | undefined> {
  if (asked.method === 'openenv/session/create') return rpcResult(id, { session_id: session.id })
  const answer = await answerRpc({ id, ...asked }, session, 'mcp')
  // A session whose world did not open is nobody's, and would take a place until it is idle.
  if (answer && 'error' in answer) await session[Symbol.asyncDispose]()
  else reply.header('mcp-session-id', session.id)
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
function wantedOf({ query }: RequestHead): Wanted {
  const { index, seed, ...rest } = query
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
