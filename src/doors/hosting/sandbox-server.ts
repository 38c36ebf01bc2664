import { createHash, randomUUID } from 'node:crypto'
import { mkdtemp } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { FastifyInstance, FastifyReply } from 'fastify'
import { z } from 'zod'
import { describeCause } from '../../base/core/failure.ts'
import { unpackFolder } from '../../worlds/workspaces/archive.ts'
import {
  ImpossibleError,
  type Workspace,
  type Workspaces,
} from '../../worlds/workspaces/contract.ts'
import { mostArchive, sandboxProtocol } from '../../worlds/workspaces/remote.ts'
import { removeTree } from '../../worlds/workspaces/trees.ts'
import { openDoor } from '../door/door.ts'
import { RefusedRequest } from '../door/json-body.ts'
import type { HostServer, HostServerOptions } from './server.ts'

/** Where the server listens, who may use it, and how much it keeps. */
export interface SandboxServerOptions extends HostServerOptions {
  /** Workspaces at one time; further requests are told to retry. @default 64 */
  readonly sessions?: number
  /** Seconds after which a workspace that nobody uses is ended. @default 3600 */
  readonly idleSeconds?: number
}

/** What a system takes as a word of a command, a variable or a path. */
const word = z.string().refine(text => !text.includes('\0'), 'it has a NUL character')
const path = word.startsWith('/').max(1000)
const texts = z.record(word, word).optional()
const opening = z.object({
  workingFolder: path,
  variables: texts,
  network: z.enum(['none', 'outside']).optional(),
  image: z.union([z.object({ name: word }), z.object({ uploaded: z.string() })]).optional(),
})
const running = z.object({
  command: z.array(word).min(1),
  input: z.base64().optional(),
  seconds: z.number().positive().max(86_400).optional(),
  variables: texts,
})

/** Serves workspaces of this machine to others: docs/guides/workspace.md has the requests. */
export async function serveSandbox(
  workspaces: Workspaces,
  options: SandboxServerOptions = {},
): Promise<HostServer> {
  const door = { ...options, host: options.host ?? '127.0.0.1' }
  const server = openDoor({ ...door, bodyBytes: mostArchive, requestSeconds: 1800 })
  server.addContentTypeParser('application/x-tar', { parseAs: 'buffer' }, (_, body, done) =>
    done(null, body),
  )
  server.setErrorHandler(async (cause, _request, reply) => {
    await reply.code(statusOf(cause)).send({ error: describeCause(cause) })
  })
  const open = new OpenWorkspaces(workspaces, options)
  addRoutes(server, open)
  const url = await server.listen({ port: options.port ?? 8100, host: door.host })
  return {
    url,
    async [Symbol.asyncDispose]() {
      await server.close()
      await open[Symbol.asyncDispose]()
    },
  }
}

/** 500 says that this machine failed; what cannot be done as it was asked is the client's mistake. */
function statusOf(cause: unknown): number {
  if (cause instanceof ImpossibleError) return 400
  const { statusCode = 500 } = cause as { readonly statusCode?: number }
  return statusCode
}

function addRoutes(server: FastifyInstance, open: OpenWorkspaces): void {
  const { name, isolation, buildsImages } = open.workspaces
  const about = {
    protocol: sandboxProtocol,
    name,
    isolation,
    ...(buildsImages && { buildsImages }),
  }
  server.get('/health', { config: { needsNoToken: true } }, async () => ({ status: 'healthy' }))
  server.get('/', async () => about)
  server.post('/images', async ({ body }) => ({ id: await open.keepImage(archiveOf(body)) }))
  server.post('/workspaces', async ({ body }, reply) => {
    const { image, ...rest } = parse(opening, body)
    const from = image && ('name' in image ? image : { build: open.image(image.uploaded) })
    const source = { ...rest, puts: [], ...(from && { image: from }) }
    return { id: await open.add(() => open.workspaces.open(source, { signal: gone(reply) })) }
  })
  server.put<OfId>('/workspaces/:id/files', async ({ params, query, body }, reply) => {
    const { to } = parse(z.object({ to: path }), query)
    await open.with(params.id, async workspace => {
      await unpacked(archiveOf(body), from => workspace.put({ from, to }, { signal: gone(reply) }))
    })
    return { id: params.id }
  })
  server.post<OfId>('/workspaces/:id/run', async ({ params, body }, reply) => {
    const { command, input, ...rest } = parse(running, body)
    const given = input === undefined ? {} : { input: Buffer.from(input, 'base64') }
    return await open.with(params.id, workspace =>
      workspace.run(command, { ...rest, ...given, signal: gone(reply) }),
    )
  })
  server.post<OfId>('/workspaces/:id/fork', async ({ params }, reply) =>
    open.with(params.id, async workspace => ({
      id: await open.add(() => workspace.fork({ signal: gone(reply) })),
    })),
  )
  server.delete<OfId>('/workspaces/:id', async ({ params }) => {
    await open.end(params.id)
    return { id: params.id }
  })
}

interface OfId {
  readonly Params: { readonly id: string }
}

interface OpenWorkspace {
  readonly workspace: Workspace
  users: number
  /** When somebody last used it. */
  used: number
}

/** The open workspaces, by names that cannot be guessed. */
class OpenWorkspaces implements AsyncDisposable {
  readonly workspaces: Workspaces
  readonly #open = new Map<string, OpenWorkspace>()
  readonly #images = new Map<string, string>()
  readonly #most: number
  readonly #timer: NodeJS.Timeout
  #opening = 0

  constructor(workspaces: Workspaces, { sessions = 64, idleSeconds = 3600 }: SandboxServerOptions) {
    this.workspaces = workspaces
    this.#most = sessions
    this.#timer = setInterval(() => void this.#sweep(idleSeconds), 10_000)
    this.#timer.unref()
  }

  async add(open: () => Promise<Workspace>): Promise<string> {
    if (this.#open.size + this.#opening >= this.#most) {
      throw new RefusedRequest(503, `all ${this.#most} workspaces are in use: come again`)
    }
    this.#opening++
    try {
      const id = randomUUID()
      this.#open.set(id, { workspace: await open(), users: 0, used: performance.now() })
      return id
    } finally {
      this.#opening--
    }
  }

  async with<T>(id: string, work: (workspace: Workspace) => Promise<T>): Promise<T> {
    const found = this.#open.get(id)
    if (!found) throw new RefusedRequest(404, 'no such workspace: it was ended, or left idle')
    found.users++
    try {
      return await work(found.workspace)
    } finally {
      found.users--
      found.used = performance.now()
    }
  }

  async end(id: string): Promise<void> {
    const found = this.#open.get(id)
    this.#open.delete(id)
    await found?.workspace[Symbol.asyncDispose]()
  }

  /** Keeps the folder that an image is built from; one that is sent again is kept once. */
  async keepImage(archive: Buffer): Promise<string> {
    const id = createHash('sha256').update(archive).digest('hex')
    if (this.#images.has(id)) return id
    const folder = await mkdtemp(join(tmpdir(), 'espalier-image-'))
    try {
      await unpackFolder(archive, folder, { signal: AbortSignal.timeout(600_000) })
    } catch (cause) {
      await removeTree(folder)
      throw cause
    }
    this.#images.set(id, folder)
    return id
  }

  image(id: string): string {
    const folder = this.#images.get(id)
    if (folder === undefined) throw new RefusedRequest(404, 'no such image: send it again')
    return folder
  }

  async #sweep(idleSeconds: number): Promise<void> {
    const since = performance.now() - idleSeconds * 1000
    for (const [id, { users, used }] of this.#open) {
      if (users === 0 && used < since) await this.end(id).catch(() => undefined)
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    clearInterval(this.#timer)
    for (const id of [...this.#open.keys()]) await this.end(id)
    for (const folder of this.#images.values()) await removeTree(folder)
    await this.workspaces[Symbol.asyncDispose]()
  }
}

/** Aborts when the client goes away before its answer, so that its request is stopped. */
function gone(reply: FastifyReply): AbortSignal {
  const controller = new AbortController()
  reply.raw.once('close', () => {
    if (!reply.raw.writableFinished) controller.abort(new Error('the client went away'))
  })
  return controller.signal
}

async function unpacked(archive: Buffer, work: (folder: string) => Promise<void>): Promise<void> {
  const folder = await mkdtemp(join(tmpdir(), 'espalier-put-'))
  try {
    await unpackFolder(archive, folder, { signal: AbortSignal.timeout(600_000) })
    await work(folder)
  } finally {
    await removeTree(folder)
  }
}

function archiveOf(body: unknown): Buffer {
  if (Buffer.isBuffer(body)) return body
  throw new RefusedRequest(415, 'send a tar archive as application/x-tar')
}

function parse<Schema extends z.ZodType>(schema: Schema, body: unknown): z.output<Schema> {
  const result = schema.safeParse(body)
  if (result.success) return result.data
  throw new RefusedRequest(400, z.prettifyError(result.error).replaceAll('\n', ' '))
}
